// Names of nodes, which are those that gethostname() gives, and node0, node1 and so on.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "api/sockets/addresses.hpp"
#include "api/sockets/simulated_socket.hpp"

namespace apenet::sockets {
namespace {

// Whether another node than these exists is the network's business.
std::optional<std::uint32_t> node_number(std::string_view name) {
  constexpr std::string_view prefix = "node";
  std::uint32_t number = 0;
  if (!name.starts_with(prefix)) return std::nullopt;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return number;
}

std::optional<std::uint32_t> address_of(ipc::Client& client, std::string_view name) {
  if (name == "localhost") return INADDR_LOOPBACK;
  for (std::uint32_t rank = 0; rank < client.size(); ++rank) {
    if (name == client.host_name_of(rank)) return first_address + client.node_of(rank);
  }
  if (const auto number = node_number(name)) {
    for (std::uint32_t rank = 0; rank < client.size(); ++rank) {
      if (client.node_of(rank) == *number) return first_address + *number;
    }
  }
  return std::nullopt;
}

bool is_numeric(const char* name) {
  in_addr address{};
  return inet_aton(name, &address) != 0;
}

std::string dotted(std::uint32_t address) {
  const in_addr in{.s_addr = htonl(address)};
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &in, text.data(), text.size());
  return text.data();
}

bool has_sockets() {
  const ipc::Header* const machine = ipc::Client::header_of_run();
  return machine != nullptr && machine->has_sockets != 0;
}

// For the functions that return a hostent.
struct HostEntry {
  hostent entry{};
  std::array<char, 256> name{};
  in_addr address{};
  std::array<char*, 2> addresses{};
  std::array<char*, 1> aliases{};

  hostent* fill(const char* given, std::uint32_t found) {
    std::strncpy(name.data(), given, name.size() - 1);
    address.s_addr = htonl(found);
    addresses = {reinterpret_cast<char*>(&address), nullptr};
    entry = {.h_name = name.data(),
             .h_aliases = aliases.data(),
             .h_addrtype = AF_INET,
             .h_length = sizeof address,
             .h_addr_list = addresses.data()};
    return &entry;
  }
};

}  // namespace

// The C library's own, for the number: it finds services, and asks no name server.
APENET_SOCKETS_EXPORT int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                                      addrinfo** result) {
  static const auto real = next<decltype(&::getaddrinfo)>("getaddrinfo");
  if (!has_sockets()) return real(name, service, hints, result);
  addrinfo asked{};
  if (hints != nullptr) asked = *hints;
  const bool is_six = asked.ai_family == AF_INET6;  // as on a host without IPv6: socket() refuses the result
  const bool maps = is_six && (asked.ai_flags & AI_V4MAPPED) != 0;
  asked.ai_flags &= ~(AI_ADDRCONFIG | AI_ALL);
  const bool is_six_number = name != nullptr && std::strchr(name, ':') != nullptr;  // may only be read
  if ((is_six && name == nullptr) || (is_six_number && asked.ai_family != AF_INET))
    return real(name, service, &asked, result);
  if (is_six && !maps) return EAI_ADDRFAMILY;
  if (!maps) {
    asked.ai_family = AF_INET;
    asked.ai_flags &= ~AI_V4MAPPED;
  }
  if (name == nullptr || is_numeric(name)) return real(name, service, &asked, result);
  if ((asked.ai_flags & AI_NUMERICHOST) != 0) return EAI_NONAME;
  Caller* const caller = Caller::instance();
  const auto address = caller == nullptr ? std::nullopt : address_of(caller->client(), name);
  if (!address) {
    warn("getaddrinfo(): '" + std::string(name) +
         "' is no node of this run; expected node0, or a name that "
         "gethostname() gives there");
    return EAI_NONAME;
  }
  return real(dotted(*address).c_str(), service, &asked, result);
}

APENET_SOCKETS_EXPORT hostent* gethostbyname(const char* name) {
  static const auto real = next<decltype(&::gethostbyname)>("gethostbyname");
  if (!has_sockets() || is_numeric(name)) return real(name);
  static HostEntry entry;
  Caller* const caller = Caller::instance();
  const auto address = caller == nullptr ? std::nullopt : address_of(caller->client(), name);
  if (address) return entry.fill(name, *address);
  h_errno = HOST_NOT_FOUND;
  return nullptr;
}

APENET_SOCKETS_EXPORT int gethostbyaddr_r(const void* address, socklen_t length, int family, hostent* entry,
                                          char* buffer, std::size_t bytes, hostent** result, int* error) {
  static const auto real = next<decltype(&::gethostbyaddr_r)>("gethostbyaddr_r");
  if (!has_sockets()) return real(address, length, family, entry, buffer, bytes, result, error);
  *result = nullptr;
  *error = HOST_NOT_FOUND;
  return 0;
}

APENET_SOCKETS_EXPORT int gethostbyname_r(const char* name, hostent* entry, char* buffer, std::size_t bytes,
                                          hostent** result, int* error) {
  static const auto real = next<decltype(&::gethostbyname_r)>("gethostbyname_r");
  if (!has_sockets() || is_numeric(name)) return real(name, entry, buffer, bytes, result, error);
  Caller* const caller = Caller::instance();
  const auto address = caller == nullptr ? std::nullopt : address_of(caller->client(), name);
  if (address) return real(dotted(*address).c_str(), entry, buffer, bytes, result, error);
  *result = nullptr;
  *error = HOST_NOT_FOUND;
  return 0;
}

APENET_SOCKETS_EXPORT int getnameinfo(const sockaddr* address, socklen_t length, char* host,
                                      socklen_t host_bytes, char* service, socklen_t service_bytes,
                                      int flags) {
  static const auto real = next<decltype(&::getnameinfo)>("getnameinfo");
  const bool asks_server = has_sockets() && (flags & NI_NAMEREQD) == 0;
  return real(address, length, host, host_bytes, service, service_bytes,
              asks_server ? flags | NI_NUMERICHOST : flags);
}

}  // namespace apenet::sockets
