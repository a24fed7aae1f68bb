// The network interfaces of the simulated node: its loopback, and the one of the card.
#pragma once

#include <optional>

namespace apenet::sockets {

// The answer to an ioctl of a simulated socket about interfaces (netdevice(7)): 0, or -1 with errno. nullopt
// for any other request.
[[nodiscard]] std::optional<int> answer_interface_request(unsigned long request, void* argument);

}  // namespace apenet::sockets
