#include "api/libfabric/receiver.hpp"

#include <rdma/fi_errno.h>

#include <cstring>

#include "api/libfabric/domain.hpp"
#include "api/libfabric/endpoint.hpp"
#include "api/libfabric/guard.hpp"
#include "api/libfabric/transport.hpp"

namespace apenet::libfabric {
namespace {

constexpr std::size_t default_min_multi_receive = 64;

}  // namespace

Receiver::Receiver(Domain& domain, std::uint16_t number, std::uint64_t flags)
    : fid_ep{},
      Inbox(number),
      domain_(domain),
      transport_(domain.transport()),
      rail_(domain.rail()),
      engine_(transport_.engine(rail_)),
      receive_flags_(flags) {
  set_min_multi_receive(default_min_multi_receive);
}

Endpoint* Receiver::as_endpoint() {
  return fid.fclass == FI_CLASS_EP ? static_cast<Endpoint*>(this) : nullptr;
}

int get_option(fid* object, int level, int name, void* value, std::size_t* length) {
  auto& receiver = object_of<Receiver>(object);
  if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  const std::size_t room = *length;
  *length = sizeof(std::size_t);
  if (room < sizeof(std::size_t)) return -FI_ETOOSMALL;
  const std::size_t bytes = receiver.min_multi_receive();
  std::memcpy(value, &bytes, sizeof(bytes));
  return 0;
}

int set_option(fid* object, int level, int name, const void* value, std::size_t length) {
  auto& receiver = object_of<Receiver>(object);
  if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  if (length != sizeof(std::size_t)) return -FI_EINVAL;
  return enter(receiver.transport().client(), [&] {
    std::size_t bytes = 0;
    std::memcpy(&bytes, value, sizeof(bytes));
    receiver.set_min_multi_receive(bytes);
  });
}

}  // namespace apenet::libfabric
