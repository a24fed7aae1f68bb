// The network interfaces of the simulated node: its loopback, and the one of the card.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "api/sockets/addresses.hpp"
#include "api/sockets/simulated_socket.hpp"

namespace apenet::sockets {
namespace {

constexpr std::uint32_t network_mask = 0xff000000;  // both networks have it

struct Addresses {
  sockaddr_in address{};
  sockaddr_in mask{};
  sockaddr_in broadcast{};
};

sockaddr_in to_sockaddr(std::uint32_t address) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(address);
  return in;
}

// One allocation, which freeifaddrs() of the C library gives back.
struct List {
  std::array<ifaddrs, 2> entries{};
  std::array<Addresses, 2> addresses{};
  std::array<std::array<char, IFNAMSIZ>, 2> names{};
};

}  // namespace

APENET_SOCKETS_EXPORT int getifaddrs(ifaddrs** result) noexcept {
  static const auto real = next<decltype(&::getifaddrs)>("getifaddrs");
  Caller* const caller = Caller::instance();
  if (caller == nullptr) return real(result);
  auto* const list = static_cast<List*>(std::calloc(1, sizeof(List)));
  if (list == nullptr) {
    errno = ENOMEM;
    return -1;
  }
  const ipc::Client& client = caller->client();
  const std::uint32_t own = first_address + client.node_of(client.rank());
  const std::array<std::uint32_t, 2> addresses = {INADDR_LOOPBACK, own};
  constexpr std::array<const char*, 2> names = {"lo", "eth0"};
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    Addresses& one = list->addresses[i];
    one = {to_sockaddr(addresses[i]), to_sockaddr(network_mask), to_sockaddr(addresses[i] | ~network_mask)};
    std::strncpy(list->names[i].data(), names[i], IFNAMSIZ - 1);
    ifaddrs& entry = list->entries[i];
    entry.ifa_next = i == 0 ? &list->entries[1] : nullptr;
    entry.ifa_name = list->names[i].data();
    entry.ifa_flags = IFF_UP | IFF_RUNNING | (i == 0 ? IFF_LOOPBACK : IFF_BROADCAST);
    entry.ifa_addr = reinterpret_cast<sockaddr*>(&one.address);
    entry.ifa_netmask = reinterpret_cast<sockaddr*>(&one.mask);
    if (i != 0) entry.ifa_broadaddr = reinterpret_cast<sockaddr*>(&one.broadcast);
  }
  *result = list->entries.data();
  return 0;
}

}  // namespace apenet::sockets
