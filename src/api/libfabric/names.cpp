#include "api/libfabric/names.hpp"

#include <rdma/fi_errno.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "api/libfabric/guard.hpp"

namespace apenet::libfabric {
namespace {

[[noreturn]] void refuse(const char* what, std::string_view value, const std::string& expected) {
  throw FabricError(FI_ENODATA, std::string(what) + " '" + std::string(value) + "': expected " + expected);
}

// False: not a number below the bound, and nothing else.
bool parse(std::string_view text, std::uint32_t bound, std::uint32_t& number) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stopped == end && number < bound;
}

bool is_this_host(std::string_view node) {
  return node == "localhost" || node == "::1" || node.substr(0, 4) == "127.";
}

constexpr std::string_view scheme = "apenet://rank/";
constexpr std::string_view separator = "/endpoint/";
constexpr std::uint32_t endpoint_bound = 65536;

void* allocate(const EndpointName& name) {
  void* memory = std::malloc(sizeof(name));  // freed by libfabric with free()
  if (memory == nullptr) throw std::bad_alloc();
  std::memcpy(memory, &name, sizeof(name));
  return memory;
}

// A name that the program has got from us before.
EndpointName known_name(const char* what, const void* address, std::size_t length) {
  EndpointName name;
  if (length != sizeof(name)) refuse(what, "of another length", std::to_string(sizeof(name)) + " bytes");
  std::memcpy(&name, address, sizeof(name));
  if (name.magic != EndpointName::expected_magic)
    refuse(what, "of another provider", "one of this simulation");
  return name;
}

}  // namespace

EndpointName endpoint_name(const char* node, const char* service, std::uint32_t rank_count) {
  const std::string_view place = node != nullptr ? node : "localhost";
  EndpointName name;
  const std::size_t cut = place.find(separator);
  if (place.substr(0, scheme.size()) == scheme && cut != std::string_view::npos) {
    if (!parse(place.substr(scheme.size(), cut - scheme.size()), rank_count, name.rank) ||
        !parse(place.substr(cut + separator.size()), endpoint_bound, name.endpoint)) {
      refuse("node", place, "a rank below " + std::to_string(rank_count) + " and an endpoint");
    }
  } else if (!is_this_host(place) && !parse(place, rank_count, name.rank)) {
    refuse("node", place, "a rank below " + std::to_string(rank_count) + ", or a name of this host");
  }
  if (service != nullptr && !parse(service, endpoint_bound, name.endpoint))
    refuse("service", service, "the number of an endpoint, below " + std::to_string(endpoint_bound));
  return name;
}

void add_names(fi_info& info, const NamesAsked& asked, const fi_info* hints, std::uint32_t rank_count) {
  EndpointName source;
  source.rank = asked.rank;
  source.endpoint = EndpointName::any_number;
  const bool is_named = asked.node != nullptr || asked.service != nullptr;
  const bool names_source = (asked.flags & FI_SOURCE) != 0;
  if (hints != nullptr && hints->src_addr != nullptr)
    source.endpoint = known_name("src_addr", hints->src_addr, hints->src_addrlen).endpoint;
  if (is_named && names_source) {
    const EndpointName named = endpoint_name(asked.node, asked.service, rank_count);
    if (asked.service != nullptr) source.endpoint = named.endpoint;
  }
  info.src_addr = allocate(source);
  info.src_addrlen = sizeof(source);
  if (is_named && !names_source) {
    info.dest_addr = allocate(endpoint_name(asked.node, asked.service, rank_count));
  } else if (hints != nullptr && hints->dest_addr != nullptr) {
    info.dest_addr = allocate(known_name("dest_addr", hints->dest_addr, hints->dest_addrlen));
  }
  if (info.dest_addr != nullptr) info.dest_addrlen = sizeof(EndpointName);
}

}  // namespace apenet::libfabric
