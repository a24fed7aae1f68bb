#include <rdma/fi_errno.h>

#include "api/libfabric/domain.hpp"
#include "api/libfabric/eq.hpp"
#include "api/libfabric/guard.hpp"
#include "api/libfabric/unsupported.hpp"
#include "api/libfabric/waiting.hpp"

namespace apenet::libfabric {
namespace {

int open_domain2(fid_fabric* fabric, fi_info* info, fid_domain** domain, std::uint64_t flags, void* context) {
  return flags == 0 ? open_domain(fabric, info, domain, context) : -FI_ENOSYS;
}

constexpr fi_ops fabric_object_ops = object_ops(close_object<Fabric>);
constexpr fi_ops_fabric fabric_ops = {
    .size = sizeof(fi_ops_fabric),
    .domain = open_domain,
    .passive_ep = unsupported,
    .eq_open = open_eq,
    .wait_open = open_wait_set,
    .trywait = try_wait,
    .domain2 = open_domain2,
};

}  // namespace

Fabric::Fabric(Transport& transport, std::uint32_t version, void* user_context)
    : fid_fabric{}, transport_(transport) {
  fid.fclass = FI_CLASS_FABRIC;
  fid.context = user_context;
  fid.ops = table(fabric_object_ops);
  ops = table(fabric_ops);
  api_version = version;
}

int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
  return enter([&]() -> int {
    ipc::Client* client = ipc::Client::instance();
    if (client == nullptr) return -FI_ENODATA;
    *fabric = new Fabric(Transport::of(*client), attributes->api_version, context);
    return 0;
  });
}

}  // namespace apenet::libfabric
