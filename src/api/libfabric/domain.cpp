#include "api/libfabric/domain.hpp"

#include <rdma/fi_errno.h>

#include "api/libfabric/atomics.hpp"
#include "api/libfabric/av.hpp"
#include "api/libfabric/cntr.hpp"
#include "api/libfabric/cq.hpp"
#include "api/libfabric/endpoint.hpp"
#include "api/libfabric/eq.hpp"
#include "api/libfabric/guard.hpp"
#include "api/libfabric/info.hpp"
#include "api/libfabric/region.hpp"
#include "api/libfabric/shared_contexts.hpp"
#include "api/libfabric/unsupported.hpp"
#include "api/libfabric/waiting.hpp"

namespace apenet::libfabric {
namespace {

// FI_REG_MR, which libfabric 2 declares as deprecated: every use would be a warning.
constexpr std::uint64_t register_by_event = 1ULL << 59U;

int bind_domain(fid* object, fid* other, std::uint64_t flags) {
  auto& domain = object_of<Domain>(object);
  return enter(domain.transport().client(), [&] {
    if (other->fclass != FI_CLASS_EQ) throw FabricError(FI_EINVAL, "fi_domain_bind: expected an event queue");
    domain.bind(object_of<EventQueue>(other), flags);
  });
}

int no_collectives(fid_domain* /*domain*/, fi_collective_op /*op*/, fi_collective_attr* /*attributes*/,
                   std::uint64_t /*flags*/) {
  return -FI_EOPNOTSUPP;
}

int open_endpoint2(fid_domain* domain, fi_info* info, fid_ep** ep, std::uint64_t flags, void* context) {
  return flags == 0 ? open_endpoint(domain, info, ep, context) : -FI_ENOSYS;
}

constexpr fi_ops domain_object_ops = object_ops(close_object<Domain>, bind_domain);
constexpr fi_ops_domain domain_ops = {
    .size = sizeof(fi_ops_domain),
    .av_open = open_av,
    .cq_open = open_cq,
    .endpoint = open_endpoint,
    .scalable_ep = unsupported,
    .cntr_open = open_counter,
    .poll_open = open_poll_set,
    .stx_ctx = open_shared_transmit,
    .srx_ctx = open_shared_receive,
    .query_atomic = query_atomic,
    .query_collective = no_collectives,
    .endpoint2 = open_endpoint2,
};

int mode_of(const fi_info& info) {
  return info.domain_attr != nullptr ? info.domain_attr->mr_mode : 0;
}

}  // namespace

Domain::Domain(Fabric& owner, const fi_info& info, void* user_context)
    : fid_domain{},
      fabric_(owner),
      rail_(rail_of(owner.transport().client().header(), info.domain_attr)),
      number_(owner.transport().new_domain()),
      chooses_keys_(mode_of(info) == basic_registration || (mode_of(info) & FI_MR_PROV_KEY) != 0),
      has_virtual_addresses_(mode_of(info) == basic_registration || (mode_of(info) & FI_MR_VIRT_ADDR) != 0) {
  fid.fclass = FI_CLASS_DOMAIN;
  fid.context = user_context;
  fid.ops = table(domain_object_ops);
  ops = table(domain_ops);
  mr = table(region_ops);
}

Domain::~Domain() {
  if (eq_ != nullptr) eq_->bound(-1);
}

void Domain::add_region(MemoryRegion& region) {
  regions_.emplace(region.key, &region);
  bound(1);
}

void Domain::remove_region(MemoryRegion& region) {
  regions_.erase(region.key);
  bound(-1);
}

void Domain::bind(EventQueue& eq, std::uint64_t flags) {
  if (eq_ != nullptr) throw FabricError(FI_EINVAL, "fi_domain_bind: a second event queue");
  eq_ = &eq;
  registers_by_event_ = (flags & register_by_event) != 0;
  eq.bound(1);
}

int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) {
  Fabric& owner = *static_cast<Fabric*>(fabric);
  return enter(owner.transport().client(), [&] { *domain = new Domain(owner, *info, context); });
}

}  // namespace apenet::libfabric
