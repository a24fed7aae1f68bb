// RouteCache: routes that have been computed, in bounded memory.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernel/check.hpp"
#include "kernel/large_array.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

// The ports of routes by router and destination. A network of at most max_routes (routers times nodes) has a
// place for each of them. In a larger one, several routes share a place, and the last one is kept. So a route
// that is not found must be computed again.
class RouteCache {
 public:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint64_t most_routes = 1U << 26U;  // 256 MiB

  RouteCache(const Topology& topology, std::uint64_t max_routes)
      : endpoint_count_(topology.endpoint_count()),
        ports_(topology.ports_per_router()),
        port_bits_(static_cast<unsigned>(std::bit_width(ports_))),
        index_bits_(static_cast<unsigned>(std::bit_width(max_routes) - 1)) {
    const std::uint64_t routes = std::uint64_t{topology.router_count()} * endpoint_count_;
    const std::uint64_t places = std::uint64_t{1} << index_bits_;
    index_mask_ = places - 1;
    APENET_CHECK(std::bit_width(routes >> index_bits_) + port_bits_ <= 32, "%llu routes of %u ports",
                 static_cast<unsigned long long>(routes), ports_);
    has_all_places_ = routes <= places;
    entries_.resize(std::min(routes, places));
  }

  [[nodiscard]] bool has_all_places() const { return has_all_places_; }
  // Returns the port, or `none`.
  [[nodiscard]] std::uint32_t find(RouterId router, NodeId destination) const {
    const CacheIndex place = place_of(router, destination);
    const std::uint32_t port = (entries_[place.index] ^ place.mark) - 1;
    return port < ports_ ? port : none;
  }
  void set(RouterId router, NodeId destination, std::uint32_t port) {
    const CacheIndex place = place_of(router, destination);
    entries_[place.index] = place.mark | (port + 1);
  }

 private:
  struct CacheIndex {
    std::size_t index;
    std::uint32_t mark;  // mark of the route among those that share the place
  };

  // While all routes have places, the mark is 0 and the index the number of the route, so that the routes of
  // a router lie together. Index and mark determine the number.
  [[nodiscard]] CacheIndex place_of(RouterId router, NodeId destination) const {
    const std::uint64_t number = std::uint64_t{router} * endpoint_count_ + destination;
    const std::uint64_t mark = number >> index_bits_;
    constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15U;
    const std::uint64_t scattered = number ^ (mark * golden_ratio >> 32U);
    return {scattered & index_mask_, static_cast<std::uint32_t>(mark << port_bits_)};
  }

  std::uint64_t endpoint_count_;
  std::uint32_t ports_;
  unsigned port_bits_;
  unsigned index_bits_;
  std::uint64_t index_mask_;
  bool has_all_places_;
  LargeArray<std::uint32_t> entries_;  // mark, and in the low port_bits_ 1 + port; 0: none
};

}  // namespace apenet
