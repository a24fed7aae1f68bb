#include "api/sockets/interfaces.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "api/sockets/addresses.hpp"
#include "api/sockets/simulated_socket.hpp"

namespace apenet::sockets {
namespace {

constexpr std::uint32_t network_mask = 0xff000000;  // both networks have it
constexpr int loopback_mtu_bytes = 65536;           // as on Linux

struct Interface {
  std::string_view name;
  int number = 0;
  std::uint32_t address = 0;
  short flags = 0;
  int mtu_bytes = 0;

  [[nodiscard]] bool is_loopback() const { return (flags & IFF_LOOPBACK) != 0; }
  [[nodiscard]] std::uint32_t broadcast() const { return address | ~network_mask; }
};

std::array<Interface, 2> interfaces_of(Caller& caller) {
  const ipc::Client& client = caller.client();
  constexpr short up = IFF_UP | IFF_RUNNING;
  return {{{"lo", 1, INADDR_LOOPBACK, up | IFF_LOOPBACK, loopback_mtu_bytes},
           {"eth0", 2, first_address + client.node_of(client.rank()), up | IFF_BROADCAST,
            static_cast<int>(caller.costs().mtu_bytes)}}};
}

sockaddr_in to_sockaddr(std::uint32_t address) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(address);
  return in;
}

void write(sockaddr& to, std::uint32_t address) {
  const sockaddr_in in = to_sockaddr(address);
  std::memcpy(&to, &in, sizeof in);
}

void write_name(char (&to)[IFNAMSIZ], std::string_view name) {
  std::memset(to, 0, sizeof to);
  name.copy(to, sizeof to - 1);
}

// Locally administered, with the node's address in it.
void write_hardware_address(sockaddr& to, const Interface& of) {
  to = {};
  to.sa_family = of.is_loopback() ? ARPHRD_LOOPBACK : ARPHRD_ETHER;
  if (of.is_loopback()) return;
  to.sa_data[0] = 0x02;
  const std::uint32_t address = htonl(of.address);
  std::memcpy(to.sa_data + 2, &address, sizeof address);
}

// As many as the caller has room for; without a buffer, the room for all.
int list_interfaces(Caller& caller, ifconf& list) {
  const auto room = static_cast<std::size_t>(std::max(list.ifc_len, 0)) / sizeof(ifreq);
  const std::array<Interface, 2> all = interfaces_of(caller);
  const std::size_t count = list.ifc_req == nullptr ? all.size() : std::min(room, all.size());
  for (std::size_t i = 0; list.ifc_req != nullptr && i < count; ++i) {
    write_name(list.ifc_req[i].ifr_name, all[i].name);
    write(list.ifc_req[i].ifr_addr, all[i].address);
  }
  list.ifc_len = static_cast<int>(count * sizeof(ifreq));
  return 0;
}

int refuse(int error) {
  errno = error;
  return -1;
}

int answer_about(const Interface& one, unsigned long request, ifreq& answer) {
  switch (request) {
    case SIOCGIFNAME:
      write_name(answer.ifr_name, one.name);
      return 0;
    case SIOCGIFINDEX:
      answer.ifr_ifindex = one.number;
      return 0;
    case SIOCGIFFLAGS:
      answer.ifr_flags = one.flags;
      return 0;
    case SIOCGIFADDR:
      write(answer.ifr_addr, one.address);
      return 0;
    case SIOCGIFNETMASK:
      write(answer.ifr_netmask, network_mask);
      return 0;
    case SIOCGIFBRDADDR:
      write(answer.ifr_broadaddr, one.is_loopback() ? INADDR_ANY : one.broadcast());
      return 0;
    case SIOCGIFHWADDR:
      write_hardware_address(answer.ifr_hwaddr, one);
      return 0;
    case SIOCGIFMTU:
      answer.ifr_mtu = one.mtu_bytes;
      return 0;
    case SIOCGIFMETRIC:
      answer.ifr_metric = 0;
      return 0;
    default:
      return refuse(EOPNOTSUPP);
  }
}

bool is_change(unsigned long request) {
  constexpr std::array<unsigned long, 11> changes = {
      SIOCSIFNAME,   SIOCSIFFLAGS, SIOCSIFADDR,   SIOCSIFDSTADDR, SIOCSIFBRDADDR, SIOCSIFNETMASK,
      SIOCSIFMETRIC, SIOCSIFMTU,   SIOCSIFHWADDR, SIOCADDRT,      SIOCDELRT};
  return std::find(changes.begin(), changes.end(), request) != changes.end();
}

// One allocation, which freeifaddrs() of the C library gives back.
struct List {
  struct Addresses {
    sockaddr_in address{};
    sockaddr_in mask{};
    sockaddr_in broadcast{};
  };
  std::array<ifaddrs, 2> entries{};
  std::array<Addresses, 2> addresses{};
  std::array<char[IFNAMSIZ], 2> names{};
};

}  // namespace

std::optional<int> answer_interface_request(unsigned long request, void* argument) {
  // Those of routes, interfaces and devices (linux/sockios.h).
  constexpr unsigned long first = SIOCADDRT;
  constexpr unsigned long last = 0x89ff;
  if (request < first || request > last) return std::nullopt;
  Caller* const caller = Caller::known();
  if (caller == nullptr) return std::nullopt;
  if (is_change(request)) return refuse(EPERM);
  if (argument == nullptr) return refuse(EFAULT);
  if (request == SIOCGIFCONF) return list_interfaces(*caller, *static_cast<ifconf*>(argument));
  auto& asked = *static_cast<ifreq*>(argument);
  const std::string_view name(asked.ifr_name, ::strnlen(asked.ifr_name, IFNAMSIZ));
  for (const Interface& one : interfaces_of(*caller)) {
    const bool is_asked = request == SIOCGIFNAME ? one.number == asked.ifr_ifindex : one.name == name;
    if (is_asked) return answer_about(one, request, asked);
  }
  return refuse(ENODEV);
}

APENET_SOCKETS_EXPORT int getifaddrs(ifaddrs** result) noexcept {
  static const auto real = next<decltype(&::getifaddrs)>("getifaddrs");
  Caller* const caller = Caller::instance();
  if (caller == nullptr) return real(result);
  auto* const list = static_cast<List*>(std::calloc(1, sizeof(List)));
  if (list == nullptr) {
    errno = ENOMEM;
    return -1;
  }
  const std::array<Interface, 2> all = interfaces_of(*caller);
  for (std::size_t i = 0; i < all.size(); ++i) {
    List::Addresses& one = list->addresses[i];
    one = {to_sockaddr(all[i].address), to_sockaddr(network_mask), to_sockaddr(all[i].broadcast())};
    write_name(list->names[i], all[i].name);
    ifaddrs& entry = list->entries[i];
    entry.ifa_next = i == 0 ? &list->entries[1] : nullptr;
    entry.ifa_name = list->names[i];
    entry.ifa_flags = static_cast<unsigned int>(all[i].flags);
    entry.ifa_addr = reinterpret_cast<sockaddr*>(&one.address);
    entry.ifa_netmask = reinterpret_cast<sockaddr*>(&one.mask);
    if (!all[i].is_loopback()) entry.ifa_broadaddr = reinterpret_cast<sockaddr*>(&one.broadcast);
  }
  *result = list->entries.data();
  return 0;
}

APENET_SOCKETS_EXPORT unsigned int if_nametoindex(const char* name) noexcept {
  static const auto real = next<decltype(&::if_nametoindex)>("if_nametoindex");
  Caller* const caller = Caller::instance();
  if (caller == nullptr) return real(name);
  for (const Interface& one : interfaces_of(*caller)) {
    if (one.name == name) return static_cast<unsigned int>(one.number);
  }
  errno = ENODEV;
  return 0;
}

APENET_SOCKETS_EXPORT char* if_indextoname(unsigned int number, char* name) noexcept {
  static const auto real = next<decltype(&::if_indextoname)>("if_indextoname");
  Caller* const caller = Caller::instance();
  if (caller == nullptr) return real(number, name);
  for (const Interface& one : interfaces_of(*caller)) {
    if (static_cast<unsigned int>(one.number) != number) continue;
    std::memset(name, 0, IFNAMSIZ);
    one.name.copy(name, IFNAMSIZ - 1);
    return name;
  }
  errno = ENXIO;
  return nullptr;
}

}  // namespace apenet::sockets
