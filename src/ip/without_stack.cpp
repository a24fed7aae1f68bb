// For builds without cargo.
#include "ip/sockets.hpp"
#include "kernel/check.hpp"

namespace apenet::ip {

bool has_stack() {
  return false;
}

std::unique_ptr<Sockets> make_sockets(const SocketsConfig& /*config*/) {
  APENET_CHECK(false, "this build has no TCP/IP stack%s", "");
  return nullptr;
}

}  // namespace apenet::ip
