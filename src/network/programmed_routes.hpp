// ProgrammedRoutes: routes of a torus or mesh that a program sets while the network runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "network/description.hpp"
#include "network/network.hpp"
#include "network/routing/route_table.hpp"
#include "network/topology/cube.hpp"

namespace apenet {

enum class RouteRefusalKind : std::uint8_t { unsupported, bad_route, deadlock };

// Why routes are not read or not taken. The message says it.
class RouteRefusal : public std::runtime_error {
 public:
  RouteRefusal(RouteRefusalKind kind, const std::string& why) : std::runtime_error(why), kind_(kind) {}
  [[nodiscard]] RouteRefusalKind kind() const { return kind_; }

 private:
  RouteRefusalKind kind_;
};

// The path of packets from one node to another: the port of each hop, 2 x dimension, and 1 more for the
// negative direction. A router has one entry for each destination (APELink's routing is programmable:
// PoS(LAT2005)100, section 1). So a route also moves the packets for its end that enter it on the way.
struct ProgrammedRoute {
  NodeId from = 0;
  NodeId to = 0;
  std::vector<std::uint32_t> ports;
};

// Pairs without a programmed route follow the machine's own routing. On a torus, a hop has class 0 if its
// packet is still to cross the wrap-around link of this dimension before it turns, else class 1, as
// DimensionOrderRouting has it; with a routing of one class, all hops have that.
class ProgrammedRoutes {
 public:
  // The network is the described one. Throws RouteRefusal if its packets have no one path, or if its routes
  // change by themselves.
  ProgrammedRoutes(const NetworkDescription& description, Network& network);

  // The ports from one node to another, as the packets go now.
  [[nodiscard]] std::vector<std::uint32_t> path(NodeId from, NodeId to) const;

  // Replaces all programmed routes by these, together. Throws RouteRefusal, without effect, for a route that
  // does not lead to its end, two that need different entries of one router, and routes that can deadlock
  // with all others. Requires is_network_empty().
  void program(std::span<const ProgrammedRoute> routes);
  [[nodiscard]] bool is_network_empty() const { return network_.is_empty(); }

 private:
  [[nodiscard]] std::unique_ptr<RouteTable> own_table() const;
  void enter(const ProgrammedRoute& route, RouteTable& table, std::vector<bool>& is_programmed) const;
  [[nodiscard]] std::vector<RouterId> routers_of(const ProgrammedRoute& route) const;
  [[nodiscard]] std::uint8_t channel_class(const ProgrammedRoute& route, std::span<const RouterId> routers,
                                           std::size_t hop) const;
  [[nodiscard]] bool wraps_around(RouterId router, std::uint32_t port) const;
  [[nodiscard]] std::string text_of(const ProgrammedRoute& route) const;

  Network& network_;
  Topology topology_;
  std::unique_ptr<const Routing> own_;
  std::optional<CubeShape> torus_;           // the torus whose wrap-around links have a class of their own
  std::unique_ptr<const RouteTable> table_;  // in force; nullptr: own_
};

}  // namespace apenet
