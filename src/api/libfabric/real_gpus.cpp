#include "api/libfabric/real_gpus.hpp"

#include <link.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <string>

#include "api/gpu/apenet_gpu.h"
#include "api/libfabric/log.hpp"

namespace apenet::libfabric {
namespace {

// How many libraries the process has ever loaded. Some 26 ns; dlopen() of a library that is not there takes
// a thousand times as long.
unsigned long long count_loaded_libraries() {
  unsigned long long loaded = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t /*bytes*/, void* result) {
        *static_cast<unsigned long long*>(result) = info->dlpi_adds;
        return 1;
      },
      &loaded);
  return loaded;
}

}  // namespace

RealGpus::RealGpus(ipc::Client& client)
    : client_(client), is_active_(client.costs(0).gpu_copy_bytes_per_second > 0) {}

bool RealGpus::has_driver() {
  if (driver_ != nullptr) return true;
  const unsigned long long loaded = count_loaded_libraries();
  if (loaded == libraries_loaded_) return false;
  libraries_loaded_ = loaded;
  try {
    driver_ = CudaDriver::find_loaded();
  } catch (const DeviceError& error) {
    warn(error.message());
  }
  is_active_ = is_active_ || driver_ != nullptr;
  return driver_ != nullptr;
}

std::optional<DeviceMemory> RealGpus::find(std::uint64_t address, std::uint64_t bytes) {
  if (!has_driver()) return std::nullopt;
  const std::optional<DeviceMemory> memory = driver_->find(address);
  if (!memory) return std::nullopt;
  if (client_.costs(0).gpu_copy_bytes_per_second == 0) {
    throw DeviceError(FI_EOPNOTSUPP, "device memory of CUDA in a call: machine '" +
                                         std::string(client_.header().machine) + "' has no GPU");
  }
  const std::uint64_t offset = address - memory->begin;
  if (offset >= memory->bytes)
    throw DeviceError(FI_EIO,
                      "cuPointerGetAttributes reports an allocation without the address it was asked for");
  const std::uint64_t left = memory->bytes - offset;
  if (bytes > left) {
    throw DeviceError(FI_EFAULT, "a buffer of " + std::to_string(bytes) + " bytes begins " +
                                     std::to_string(left) +
                                     " bytes before the end of its allocation of CUDA device memory");
  }
  return memory;
}

bool RealGpus::replace_known(message::Segment& piece) {
  const std::optional<DeviceMemory> memory = find(piece.address, piece.length);
  if (!memory) return false;
  piece.address = stand_in_of(*memory) + (piece.address - memory->begin);
  return true;
}

std::uint64_t RealGpus::stand_in_of(const DeviceMemory& memory) {
  const auto known = by_device_.find(memory.begin);
  if (known != by_device_.end()) {
    DeviceMemory& before = stand_ins_.at(known->second);
    before.context = memory.context;
    if (before.bytes == memory.bytes) return known->second;
  }
  forget_freed();
  void* stand_in = ape_gpu_malloc(memory.bytes);
  if (stand_in == nullptr) {
    throw DeviceError(FI_ENOMEM, "no stand-in for " + std::to_string(memory.bytes) +
                                     " bytes of CUDA device memory: the simulated GPU's memory is used up");
  }
  const std::uint64_t address = message::address_of(stand_in);
  stand_ins_.emplace(address, memory);
  by_device_.emplace(memory.begin, address);
  return address;
}

// A stand-in lives as long as its allocation; the driver tells of no end.
void RealGpus::forget_freed() {
  for (auto known = stand_ins_.begin(); known != stand_ins_.end();) {
    if (driver_->has(known->second)) {
      ++known;
      continue;
    }
    ape_gpu_free(message::memory_at(known->first));
    by_device_.erase(known->second.begin);
    known = stand_ins_.erase(known);
  }
}

RealGpus::StandIns::const_iterator RealGpus::of_stand_in(std::uint64_t address) const {
  auto found = stand_ins_.upper_bound(address);
  if (found == stand_ins_.begin()) return stand_ins_.end();
  --found;
  return address - found->first < found->second.bytes ? found : stand_ins_.end();
}

std::uint64_t RealGpus::programs_address(std::uint64_t address) const {
  const auto found = of_stand_in(address);
  return found != stand_ins_.end() ? found->second.begin + (address - found->first) : address;
}

void RealGpus::fetch_known(const message::Buffer& buffer) {
  for (std::uint32_t i = 0; i < buffer.count; ++i) {
    const message::Segment& piece = buffer.pieces[i];
    const auto found = piece.length > 0 ? of_stand_in(piece.address) : stand_ins_.end();
    if (found == stand_ins_.end()) continue;
    driver_->copy_from(found->second, programs_address(piece.address), message::memory_at(piece.address),
                       piece.length);
  }
}

bool RealGpus::deliver_known(const message::Buffer& buffer, std::uint64_t bytes) {
  bool delivered = true;
  for (std::uint32_t i = 0; i < buffer.count && bytes > 0 && delivered; ++i) {
    const message::Segment& piece = buffer.pieces[i];
    const std::uint64_t part = std::min(bytes, piece.length);
    bytes -= part;
    const auto found = part > 0 ? of_stand_in(piece.address) : stand_ins_.end();
    if (found == stand_ins_.end()) continue;
    try {
      driver_->copy_to(found->second, programs_address(piece.address), message::memory_at(piece.address),
                       part);
    } catch (const DeviceError& error) {
      warn(error.message());
      delivered = false;
    }
  }
  return delivered;
}

}  // namespace apenet::libfabric
