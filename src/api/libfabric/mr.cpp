// fi_mr_reg and its kin. Remote accesses are checked where they take effect: by the simulator for puts and
// gets, by the provider for atomics.
#include <rdma/fi_errno.h>

#include "api/gpu/apenet_gpu.h"
#include "api/libfabric/cntr.hpp"
#include "api/libfabric/domain.hpp"
#include "api/libfabric/eq.hpp"
#include "api/libfabric/guard.hpp"
#include "api/libfabric/region.hpp"
#include "api/libfabric/transport.hpp"
#include "api/libfabric/unsupported.hpp"

namespace apenet::libfabric {
namespace {

// FI_MR_ENDPOINT: regions are bound to an endpoint and enabled; ours are good for all of them.
int bind_region(fid* object, fid* other, std::uint64_t flags) {
  auto& region = object_of<MemoryRegion>(object);
  return enter(region.transport().client(), [&]() -> int {
    if (other->fclass == FI_CLASS_EP) return 0;
    if (other->fclass != FI_CLASS_CNTR)
      throw FabricError(FI_EINVAL, "fi_mr_bind: expected an endpoint or a counter");
    region.bind(object_of<Counter>(other), flags);
    return 0;
  });
}

int control_region(fid* /*object*/, int command, void* /*argument*/) {
  return command == FI_ENABLE || command == FI_REFRESH ? 0 : -FI_ENOSYS;
}

// Checks a piece that the program calls memory of CUDA.
void check_cuda(Transport& transport, const iovec& piece, bool is_simulated, int device) {
  const ipc::Header& header = transport.client().header();
  if (header.rails[0].mpi.software.gpu_copy_bytes_per_second == 0) {
    throw FabricError(
        FI_ENOSYS, std::string("fi_mr_regattr: FI_HMEM_CUDA: machine '") + header.machine + "' has no GPU");
  }
  int known_device = 0;
  if (!is_simulated) {
    const auto memory = transport.real_gpus().find(message::address_of(piece.iov_base), piece.iov_len);
    if (!memory) {
      throw FabricError(FI_EINVAL,
                        std::string("fi_mr_regattr: FI_HMEM_CUDA: expected memory of ape_gpu_malloc(), of "
                                    "libapenet-cuda.so or of a CUDA driver; ") +
                            (transport.real_gpus().has_driver() ? "libcuda.so.1 calls it memory of the host"
                                                                : "libcuda.so.1 is not loaded"));
    }
    known_device = memory->device;
  }
  if (device != known_device) {
    throw FabricError(FI_EINVAL, "fi_mr_regattr: device.cuda: expected " + std::to_string(known_device) +
                                     ", the device of the memory");
  }
}

// An address tells whether it is one of a GPU's memory; an interface that contradicts it is refused.
void check_memory(Transport& transport, const fi_mr_attr& attributes) {
  if (attributes.iface != FI_HMEM_SYSTEM && attributes.iface != FI_HMEM_CUDA)
    throw FabricError(FI_ENOSYS, "fi_mr_regattr: iface: expected FI_HMEM_SYSTEM or FI_HMEM_CUDA");
  const bool is_cuda = attributes.iface == FI_HMEM_CUDA;
  const bool is_remote = region_access(attributes.access) != 0;
  for (std::size_t i = 0; i < attributes.iov_count; ++i) {
    const iovec& piece = attributes.mr_iov[i];
    const bool is_simulated = ape_gpu_is_device(piece.iov_base) != 0;
    if (is_cuda) check_cuda(transport, piece, is_simulated, attributes.device.cuda);
    if (is_remote &&
        (is_cuda || is_simulated || transport.real_gpus().holds(message::address_of(piece.iov_base))))
      throw FabricError(FI_EOPNOTSUPP, "fi_mr_reg: a GPU's memory cannot be opened to remote access");
  }
}

constexpr fi_ops region_object_ops = object_ops(close_object<MemoryRegion>, bind_region, control_region);

int register_attributes(fid* object, const fi_mr_attr* attributes, std::uint64_t flags, fid_mr** out) {
  auto& domain = object_of<Domain>(object);
  return enter(domain.transport().client(), [&]() -> int {
    if ((flags & ~std::uint64_t{FI_RMA_EVENT}) != 0) return -FI_EBADFLAGS;
    check_memory(domain.transport(), *attributes);
    const std::uint64_t key = domain.chooses_keys() ? domain.new_key() : attributes->requested_key;
    auto* region = new MemoryRegion(domain, *attributes, key);
    ipc::Client& client = domain.transport().client();
    client.charge(client.costs(domain.rail()).publish.ps());
    *out = region;
    if (EventQueue* eq = domain.registration_eq())
      eq->push_done(FI_MR_COMPLETE, region->fid, attributes->context, 0);
    return 0;
  });
}

int register_pieces(fid* object, const iovec* pieces, std::size_t count, std::uint64_t access,
                    std::uint64_t offset, std::uint64_t key, std::uint64_t flags, fid_mr** out,
                    void* context) {
  fi_mr_attr attributes{};
  attributes.mr_iov = pieces;
  attributes.iov_count = count;
  attributes.access = access;
  attributes.offset = offset;
  attributes.requested_key = key;
  attributes.context = context;
  return register_attributes(object, &attributes, flags, out);
}

int register_buffer(fid* object, const void* start, std::size_t length, std::uint64_t access,
                    std::uint64_t offset, std::uint64_t key, std::uint64_t flags, fid_mr** out,
                    void* context) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): iovec
  const iovec piece{const_cast<void*>(start), length};
  return register_pieces(object, &piece, 1, access, offset, key, flags, out, context);
}

}  // namespace

MemoryRegion::MemoryRegion(Domain& domain, const fi_mr_attr& attributes, std::uint64_t chosen_key)
    : fid_mr{}, domain_(domain) {
  if (attributes.iov_count > segment_limit)
    throw FabricError(FI_EINVAL, "fi_mr_regv: more pieces than mr_iov_limit");
  if (domain.find_region(chosen_key) != nullptr)
    throw FabricError(FI_ENOKEY, "fi_mr_reg: the domain has a region with this key");
  ipc::Client& client = domain.transport().client();
  client.attend();
  ipc::RegionTable& table = client.regions();
  const std::uint32_t access = region_access(attributes.access);
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < attributes.iov_count && access != 0; ++i) {
    const iovec& piece = attributes.mr_iov[i];
    const auto address = reinterpret_cast<std::uint64_t>(piece.iov_base);
    const std::uint64_t begin = domain.has_virtual_addresses() ? address : offset;
    if (!table.insert({chosen_key, address, piece.iov_len, begin, domain.number(), access})) {
      table.erase(domain.number(), chosen_key);
      throw FabricError(FI_ENOMEM, "fi_mr_reg: more than mr_cnt regions are open");
    }
    offset += piece.iov_len;
  }
  fid.fclass = FI_CLASS_MR;
  fid.context = attributes.context;
  fid.ops = libfabric::table(region_object_ops);
  mem_desc = this;
  key = chosen_key;
  domain.add_region(*this);
}

MemoryRegion::~MemoryRegion() {
  transport().client().regions().erase(domain_.number(), key);
  domain_.remove_region(*this);
  if (write_counter_ != nullptr) write_counter_->bound(-1);
  if (read_counter_ != nullptr) read_counter_->bound(-1);
}

void MemoryRegion::bind(Counter& counter, std::uint64_t flags) {
  if ((flags & (FI_REMOTE_WRITE | FI_REMOTE_READ)) == 0)
    throw FabricError(FI_EBADFLAGS, "fi_mr_bind: a counter needs FI_REMOTE_WRITE or FI_REMOTE_READ");
  const auto attach = [&counter](Counter*& place) {
    if (place != nullptr) throw FabricError(FI_EINVAL, "fi_mr_bind: a second counter");
    place = &counter;
    counter.bound(1);
    counter.count_arrivals();
  };
  if ((flags & FI_REMOTE_WRITE) != 0) attach(write_counter_);
  if ((flags & FI_REMOTE_READ) != 0) attach(read_counter_);
}

void MemoryRegion::accessed(std::uint64_t flags) {
  count_access(flags, write_counter_, read_counter_);
}

std::uint32_t region_access(std::uint64_t flags) {
  return ((flags & FI_REMOTE_READ) != 0 ? std::uint32_t{ipc::may_read} : 0) |
         ((flags & FI_REMOTE_WRITE) != 0 ? std::uint32_t{ipc::may_write} : 0);
}

const fi_ops_mr region_ops = {
    .size = sizeof(fi_ops_mr),
    .reg = register_buffer,
    .regv = register_pieces,
    .regattr = register_attributes,
};

}  // namespace apenet::libfabric
