// RealGpus: device memory of the host's real GPUs in the program's calls.
//
// Neither the CPU nor the simulator can access such memory. Each allocation that a call names gets a
// stand-in: as much memory of the simulated GPU, whose address the engine and the card use, so that it costs
// what the simulated GPU's memory costs. The driver copies a message's bytes to the stand-in before they are
// sent, and from there to the device before the program gets their completion.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "api/libfabric/cuda_driver.hpp"
#include "message/buffer.hpp"
#include "runtime/ipc/client.hpp"

namespace apenet::libfabric {

class RealGpus {
 public:
  explicit RealGpus(ipc::Client& client);
  RealGpus(const RealGpus&) = delete;
  RealGpus& operator=(const RealGpus&) = delete;

  // True: the piece was real device memory, and is now that of its stand-in. Throws DeviceError. A piece of
  // the host's memory costs a branch where neither the machine has a GPU nor the program a driver.
  bool replace(message::Segment& piece) { return is_active_ && piece.length > 0 && replace_known(piece); }
  // For the pieces that replace() has changed: fills the stand-ins, and gives the first `bytes` bytes to the
  // devices. fetch() throws DeviceError; deliver() prints its text and returns false.
  void fetch(const message::Buffer& buffer) {
    if (buffer.gpu_pieces != 0 && !stand_ins_.empty()) fetch_known(buffer);
  }
  [[nodiscard]] bool deliver(const message::Buffer& buffer, std::uint64_t bytes) {
    return buffer.gpu_pieces == 0 || stand_ins_.empty() || deliver_known(buffer, bytes);
  }
  // The program's address of what replace() has changed, and any other address as it is.
  [[nodiscard]] std::uint64_t programs_address(std::uint64_t address) const;

  // The allocation that contains all these bytes. Nothing: the driver is not loaded, or it is memory of the
  // host. Throws DeviceError.
  [[nodiscard]] std::optional<DeviceMemory> find(std::uint64_t address, std::uint64_t bytes);
  // Whether the address is in real device memory.
  [[nodiscard]] bool holds(std::uint64_t address) {
    return is_active_ && has_driver() && driver_->holds(address);
  }
  // Searches for the driver now. Later calls search for it only on a machine with a GPU.
  bool has_driver();

 private:
  // In the order of the stand-ins' addresses.
  using StandIns = std::map<std::uint64_t, DeviceMemory>;

  bool replace_known(message::Segment& piece);
  void fetch_known(const message::Buffer& buffer);
  bool deliver_known(const message::Buffer& buffer, std::uint64_t bytes);
  [[nodiscard]] std::uint64_t stand_in_of(const DeviceMemory& memory);
  void forget_freed();
  [[nodiscard]] StandIns::const_iterator of_stand_in(std::uint64_t address) const;

  ipc::Client& client_;
  bool is_active_;
  std::unique_ptr<CudaDriver> driver_;
  unsigned long long libraries_loaded_ = 0;  // when it was last searched for
  StandIns stand_ins_;
  std::map<std::uint64_t, std::uint64_t> by_device_;  // the stand-in of each allocation
};

}  // namespace apenet::libfabric
