// RouteTable: a routing by table: port and class for each router and destination.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "network/routing/routing.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

class RouteTable final : public Routing {
 public:
  struct Route {
    static constexpr std::uint16_t no_port = std::numeric_limits<std::uint16_t>::max();
    std::uint16_t port = no_port;  // no_port: no route from here
    std::uint8_t channel_class = 0;
  };
  static constexpr std::uint64_t max_entries = 1U << 26U;  // 256 MiB

  // Creates a table that contains only the last step, at each destination's own router. Throws
  // std::invalid_argument, which names network.routing, if the table would be too large for memory.
  explicit RouteTable(const Topology& topology);

  [[nodiscard]] const Route& entry(RouterId router, NodeId destination) const {
    return entries_[static_cast<std::size_t>(router) * endpoint_count_ + destination];
  }
  void set(RouterId router, NodeId destination, Route entry);

  [[nodiscard]] std::uint32_t class_count() const override { return class_count_; }
  void route(const RouteQuery& query, RouteSteps& steps) const override {
    const Route found = entry(query.router, query.destination);
    if (found.port == Route::no_port) return steps.clear(RouteChoice::only);
    steps.set_only({found.port, found.channel_class});
  }
  [[nodiscard]] bool keeps_order() const override { return true; }
  [[nodiscard]] bool is_memoryless() const override { return true; }

 private:
  std::size_t endpoint_count_;
  std::uint32_t class_count_ = 1;
  std::vector<Route> entries_;  // per router and endpoint
};

}  // namespace apenet
