// Routing: which output, which class of virtual channels.
#pragma once

#include <cstdint>
#include <vector>

#include "network/packet.hpp"
#include "network/topology.hpp"

namespace apenet {

// The next step of a packet at a router.
struct RouteStep {
  std::uint32_t port = 0;
  // The virtual channels of a link are split evenly into class_count() classes; the packet takes its lane, by
  // the card's channel, within this one.
  std::uint32_t channel_class = 0;
};

// A deterministic routing without memory: the step depends on the router and the destination alone. So
// packets of one (source, destination, channel) follow one path through the same buffers and stay in order.
class Routing {
 public:
  virtual ~Routing() = default;
  [[nodiscard]] virtual std::uint32_t class_count() const = 0;
  [[nodiscard]] virtual RouteStep route(RouterId router, NodeId destination) const = 0;
};

// Dimension order on a cube: lowest dimension first, the shorter way around (APENet: PoS(LAT2005)100, section
// 2).
//
// Deadlock freedom on the torus: datelines (Dally and Seitz, IEEE Trans. Computers C-36, 1987). A packet that
// has the wrap-around link of its dimension still ahead uses class 0, any other class 1: class 0 ends with
// the wrap-around link, class 1 never contains it, so neither closes a ring.
//
// Half-way around an even ring both ways are equally short: + from routers whose coordinates have an even
// sum, - from the others. With that both cables of a dimension of two nodes carry traffic, and the directions
// of a ring balance.
class DimensionOrderRouting final : public Routing {
 public:
  DimensionOrderRouting(const CubeShape& shape, bool is_torus);
  [[nodiscard]] std::uint32_t class_count() const override { return is_torus_ ? 2 : 1; }
  [[nodiscard]] RouteStep route(RouterId router, NodeId destination) const override;

 private:
  [[nodiscard]] bool has_even_sum(RouterId router) const;

  std::vector<std::int32_t> dims_;
  std::vector<std::uint16_t>
      coordinates_;  // per node and dimension: a division each is too slow for every hop
  bool is_torus_;
};

}  // namespace apenet
