// Memory regions. The simulator checks every remote access against the target's memory as a whole; a region
// is what the program needs to name its memory, and the time that publishing it costs.
#include <rdma/fi_errno.h>

#include "api/libfabric/domain.hpp"
#include "api/libfabric/eq.hpp"
#include "api/libfabric/guard.hpp"
#include "api/libfabric/unsupported.hpp"

namespace apenet::libfabric {

struct Region : fid_mr {
  explicit Region(Domain& owner) : fid_mr{}, domain(owner) {}
  Domain& domain;
};

namespace {

Region& region_of(fid* object) {
  return *static_cast<Region*>(reinterpret_cast<fid_mr*>(object));
}

int close_region(fid* object) {
  Region& region = region_of(object);
  return enter(region.domain.port().client(), [&]() -> int {
    region.domain.regions().erase(region.key);
    region.domain.opened(-1);
    delete &region;
    return 0;
  });
}

// FI_MR_ENDPOINT: regions are bound to an endpoint and enabled; ours are good for all of them.
int bind_region(fid* /*object*/, fid* other, std::uint64_t /*flags*/) {
  return other->fclass == FI_CLASS_EP || other->fclass == FI_CLASS_CNTR ? 0 : -FI_EINVAL;
}

int control_region(fid* /*object*/, int command, void* /*argument*/) {
  return command == FI_ENABLE || command == FI_REFRESH ? 0 : -FI_ENOSYS;
}

constexpr fi_ops region_object_ops = object_ops(close_region, bind_region, control_region);

int register_attributes(fid* object, const fi_mr_attr* attributes, std::uint64_t flags, fid_mr** out) {
  Domain& domain = domain_of(object);
  return enter(domain.port().client(), [&]() -> int {
    if ((flags & ~std::uint64_t{FI_RMA_EVENT}) != 0) return -FI_EBADFLAGS;
    if (attributes->iface != FI_HMEM_SYSTEM) return -FI_ENOSYS;
    const std::uint64_t key = domain.chooses_keys() ? domain.new_key() : attributes->requested_key;
    if (domain.regions().count(key) != 0) return -FI_ENOKEY;
    auto* region = new Region(domain);
    region->fid.fclass = FI_CLASS_MR;
    region->fid.context = attributes->context;
    region->fid.ops = table(region_object_ops);
    region->mem_desc = region;
    region->key = key;
    domain.regions()[key] = region;
    domain.opened(1);
    ipc::Client& client = domain.port().client();
    client.charge(client.costs().publish_ps);
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

const fi_ops_mr region_ops = {
    .size = sizeof(fi_ops_mr),
    .reg = register_buffer,
    .regv = register_pieces,
    .regattr = register_attributes,
};

}  // namespace apenet::libfabric
