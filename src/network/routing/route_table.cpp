#include "network/routing/route_table.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace apenet {

RouteTable::RouteTable(const Topology& topology) : endpoint_count_(topology.endpoint_count()) {
  const std::uint64_t entries = std::uint64_t{topology.router_count()} * endpoint_count_;
  if (entries > max_entries || topology.ports_per_router() >= Route::no_port) {
    throw std::invalid_argument("network.routing = a table of " + std::to_string(topology.router_count()) +
                                " routers and " + std::to_string(endpoint_count_) +
                                " nodes: expected at most " + std::to_string(max_entries) +
                                " entries; larger machines need a routing that computes its steps");
  }
  entries_.resize(entries);
  for (NodeId node = 0; node < topology.endpoint_count(); ++node) {
    const PortRef attachment = topology.attachment(node);
    set(attachment.router, node, {static_cast<std::uint16_t>(attachment.port), 0});
  }
}

void RouteTable::set(RouterId router, NodeId destination, Route entry) {
  entries_[static_cast<std::size_t>(router) * endpoint_count_ + destination] = entry;
  class_count_ = std::max(class_count_, entry.channel_class + 1U);
}

}  // namespace apenet
