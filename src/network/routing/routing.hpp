// Routing: chooses the output port and the class of virtual channels.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernel/check.hpp"
#include "kernel/large_array.hpp"
#include "kernel/random.hpp"
#include "network/packet.hpp"
#include "network/topology/cube.hpp"

namespace apenet {

// All that a routing may depend on: where the packet is, where it goes, and through which channel it came.
struct RouteQuery {
  RouterId router = 0;
  NodeId destination = 0;
  std::uint32_t input_port = 0;   // the source's attachment if is_injected
  std::uint32_t input_class = 0;  // undefined if is_injected
  bool is_injected = false;       // comes from a card and has crossed no link yet
  std::uint32_t waypoint = 0;     // waypoint_of() the packet, if the routing has a waypoint_count()
};

// One possible next step. ChannelClasses splits the virtual channels of a link into class_count() classes.
// Within this class the packet takes the lane of its card channel.
struct RouteStep {
  std::uint32_t port;
  std::uint32_t channel_class;
};

// The way in which an engine chooses among several steps.
//   only      there is one
//   random    each with equal probability, by draw_step(); the packet then waits for the drawn one
//   adaptive  the step whose virtual channel has most room, the first if equal. The last step is the
//             escape: a blocked packet must be able to take it as soon as it is free
enum class RouteChoice : std::uint8_t { only, random, adaptive };

// The steps that a routing offers. A plain array that is not cleared, because it is filled at every hop of
// every packet.
class RouteSteps {
 public:
  // Both directions of six dimensions, and an escape.
  static constexpr std::uint32_t max_count = 13;

  void set_only(RouteStep step) {
    steps_[0] = step;
    count_ = 1;
    choice_ = RouteChoice::only;
  }
  // Without a following add(): the destination cannot be reached from here.
  void clear(RouteChoice choice) {
    count_ = 0;
    choice_ = choice;
  }
  void add(RouteStep step) {
    APENET_CHECK(count_ < max_count, "more than %u steps", max_count);
    steps_[count_++] = step;
  }

  [[nodiscard]] RouteChoice choice() const { return choice_; }
  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] const RouteStep& operator[](std::uint32_t index) const { return steps_[index]; }
  [[nodiscard]] const RouteStep* begin() const { return steps_.data(); }
  [[nodiscard]] const RouteStep* end() const { return steps_.data() + count_; }

 private:
  std::array<RouteStep, max_count> steps_;
  std::uint32_t count_ = 0;
  RouteChoice choice_ = RouteChoice::only;
};

struct RoutingFactor;

// Decides where packets go. A routing is a function: equal queries give equal steps, independent of history.
// At the destination's router it offers only the destination's attachment.
class Routing {
 public:
  virtual ~Routing() = default;
  [[nodiscard]] virtual std::uint32_t class_count() const = 0;
  virtual void route(const RouteQuery& query, RouteSteps& steps) const = 0;

  // Whether packets of one (source, destination, channel) follow one path through the same buffers, and so
  // stay in order. If not, the network restores the order at the destination.
  [[nodiscard]] virtual bool keeps_order() const = 0;
  // Whether the steps depend only on router and destination. Then engines need not provide the packet's
  // origin, and the deadlock check need not enumerate it.
  [[nodiscard]] virtual bool is_memoryless() const = 0;
  // Among how many waypoints each packet draws its own, RouteQuery::waypoint. 0: the steps do not depend on
  // one.
  [[nodiscard]] virtual std::uint32_t waypoint_count() const { return 0; }
  // The class in which a bubble keeps every ring free of deadlock; no_class: there is none. A ring is what a
  // packet follows that leaves each router by the port opposite to the one by which it came, in the same
  // virtual channel. Buffers of the class hold packets, each in a slot of the largest one's size: a packet
  // that goes on along its ring needs a free slot in the next buffer, and a packet that enters a ring two. So
  // a ring always keeps a free slot, the bubble, and some packet of it can move.
  static constexpr std::uint32_t no_class = std::numeric_limits<std::uint32_t>::max();
  [[nodiscard]] virtual std::uint32_t bubble_class() const { return no_class; }
  // Returns smaller networks such that a cycle of dependencies in this network implies one in at least one of
  // them. Empty: the deadlock check examines this network. An override must include the proof.
  [[nodiscard]] virtual std::vector<RoutingFactor> factors() const;
};

// Random bits of a packet for the steps that it draws. They are computed from the seed and the packet's
// identity (source, message, sequence) and depend on nothing else.
[[nodiscard]] inline std::uint32_t draws_of(std::uint64_t seed, const Packet& packet) {
  const std::uint64_t place = mix64(seed ^ (std::uint64_t{packet.source} << 32U | packet.sequence));
  return static_cast<std::uint32_t>(mix64(place ^ packet.message) >> 32U);
}
// A random one of `count` waypoints for a packet. Like draws_of, it depends on nothing else, and it is
// independent of those bits. For up to 2^24 waypoints, it deviates from uniform by less than 2^-8 of the
// probability of one.
[[nodiscard]] inline std::uint32_t waypoint_of(std::uint64_t seed, const Packet& packet,
                                               std::uint32_t count) {
  constexpr std::uint64_t other_stream = 0x76616c69616e74;
  return static_cast<std::uint32_t>(std::uint64_t{draws_of(mix64(seed ^ other_stream), packet)} * count >>
                                    32U);
}
// Returns which of `count` equal steps a packet takes. first_port: the port of the first one. Each dimension
// uses its own bit for the direction, so that choices in several dimensions are independent. Deviates from
// uniform by less than 2^-28.
[[nodiscard]] constexpr std::uint32_t draw_step(std::uint32_t count, std::uint32_t draws,
                                                std::uint32_t first_port) {
  return std::rotr(draws, static_cast<int>(first_port / 2)) % count;
}

// Packs a node's coordinates into one word. At most 2^24 nodes in at most 6 dimensions need at most 30 bits.
struct CubeDigits {
  struct Digit {
    std::uint32_t size = 0;
    std::uint32_t shift = 0;
    std::uint32_t mask = 0;
  };

  explicit CubeDigits(const CubeShape& shape);
  [[nodiscard]] std::vector<std::uint32_t> pack(const CubeShape& shape) const;  // for all nodes

  std::vector<std::uint32_t> dims;
  // One more entry than dimensions: if the destination differs in no bit, it is reached through the port
  // after those of the dimensions.
  std::array<Digit, CubeShape::max_dimensions + 1> of{};
  // The dimension of each bit of a packed word. Bits beyond the digits: the number of dimensions, meaning
  // that the destination is reached.
  std::array<std::uint8_t, 32> dimension_of_bit{};

  // The lowest bit in which two packed words differ, or the highest bit, which belongs to no digit.
  [[nodiscard]] static std::uint32_t first_difference(std::uint32_t here, std::uint32_t there) {
    return static_cast<std::uint32_t>(__builtin_ctz((here ^ there) | 1U << 31U));
  }
};

// Locates the steps of one dimension in a table that is indexed by the difference of two coordinates.
struct CubeTurns {
  std::uint32_t mask = 0;  // mask of the dimension's digit in a packed word
  std::uint32_t shift = 0;
  std::uint32_t same = 0;  // index of the step from a coordinate to itself

  // The difference modulo 2^32, to be added to an index.
  [[nodiscard]] std::uint32_t difference(std::uint32_t here, std::uint32_t there) const {
    const std::uint32_t difference = (there & mask) - (here & mask);
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(difference) >> shift);
  }
};

// Dimension order on a cube: lowest dimension first, in the shorter direction (APENet: PoS(LAT2005)100,
// section 2).
//
// Freedom from deadlock on the torus: datelines (Dally and Seitz, IEEE Trans. Computers C-36, 1987). A packet
// that still has to cross the wrap-around link of its dimension uses class 0, any other packet class 1. Class
// 0 ends with the wrap-around link and class 1 never contains it, so neither closes a ring.
//
// Half-way around an even ring both directions are equally short: routers with an even coordinate sum use +,
// the others -. So both cables of a dimension of two nodes carry traffic, and the directions of a ring are
// balanced.
class DimensionOrderRouting final : public Routing {
 public:
  DimensionOrderRouting(const CubeShape& shape, bool is_torus);
  explicit DimensionOrderRouting(const TopologyDescription& cube)
      : DimensionOrderRouting(CubeShape(cube.dims()), cube.as<TorusDescription>() != nullptr) {}
  [[nodiscard]] std::uint32_t class_count() const override { return is_torus_ ? 2 : 1; }
  void route(const RouteQuery& query, RouteSteps& steps) const override {
    steps.set_only(step(query.router, query.destination));
  }
  [[nodiscard]] bool keeps_order() const override { return true; }
  [[nodiscard]] bool is_memoryless() const override { return true; }
  // One network of k x 2 nodes for each dimension of k nodes. Proof: no packet returns to a lower dimension,
  // so a cycle stays within one dimension and, since the links of a dimension stay within one ring, within
  // one ring. There a step depends on the positions of router and destination along the ring and, for ties,
  // on the parity of the sum of the other coordinates. The rings (., 0) and (., 1) of the factor represent
  // the two parities.
  [[nodiscard]] std::vector<RoutingFactor> factors() const override;

  // The single step, for engines that call it at every hop of every packet; therefore a table look-up.
  [[nodiscard]] RouteStep step(RouterId router, NodeId destination) const {
    return step_from(place_of(router), destination);
  }
  // The same from a place that the engine keeps beside its own data of the router: in a large network, the
  // look-up here would miss the cache.
  [[nodiscard]] std::uint32_t place_of(RouterId router) const { return packed_[router]; }
  [[nodiscard]] RouteStep step_from(std::uint32_t here, NodeId destination) const {
    const std::uint32_t there = packed_[destination];
    const CubeTurns& turns = turns_of_[CubeDigits::first_difference(here, there)];
    const std::uint32_t turn = turns_[turns.same + 2 * turns.difference(here, there) + (here >> odd_sum_bit)];
    return {turn >> 1U, turn & 1U};
  }
  [[gnu::always_inline]] void prepare(NodeId destination) const {
    __builtin_prefetch(packed_.data() + destination);
  }

 private:
  static constexpr unsigned odd_sum_bit = 31;
  static constexpr std::uint32_t odd_sum = 1U << odd_sum_bit;

  [[nodiscard]] RouteStep turn(std::uint32_t dimension, std::int64_t difference, bool is_odd) const;

  CubeDigits digits_;
  LargeArray<std::uint32_t> packed_;      // coordinates of each node, and odd_sum, in one word
  std::vector<std::uint16_t> turns_;      // port << 1 | class, indexed by coordinate difference and odd_sum
  std::array<CubeTurns, 32> turns_of_{};  // indexed by bit of the packed word
  bool is_torus_;
};

// Dimension order on a torus, with the class of a ring chosen when entering it (`dim_order_torus` of
// BookSim2; Dally and Seitz, 1987): class 1 if the coordinate is greater than the destination's, else class
// 0, for both directions, kept for the whole ring. Half-way around an even ring + and - are equally probable.
//
// Freedom from deadlock: of the packets in + direction, those of class 1 cross the wrap-around link and end
// before the router where they entered, and those of class 0 do not cross it. So in neither class a chain of
// packets, each waiting for the next one's channel, can close. In - direction, class 0 crosses the link.
class DimensionOrderEntryRouting final : public Routing {
 public:
  explicit DimensionOrderEntryRouting(const CubeShape& shape);
  explicit DimensionOrderEntryRouting(const TopologyDescription& torus)
      : DimensionOrderEntryRouting(CubeShape(torus.dims())) {}
  [[nodiscard]] std::uint32_t class_count() const override { return 2; }
  void route(const RouteQuery& query, RouteSteps& steps) const override;
  [[nodiscard]] const std::vector<std::uint32_t>& dims() const { return digits_.dims; }
  [[nodiscard]] bool keeps_order() const override { return false; }
  [[nodiscard]] bool is_memoryless() const override { return false; }
  // One ring for each dimension. Proof: no packet returns to a lower dimension, so a cycle stays within one
  // ring of one dimension. There a step depends on the positions of router and destination along the ring, on
  // whether the packet has already moved along it, and on its class. A packet that enters from another
  // dimension behaves like an injected one.
  [[nodiscard]] std::vector<RoutingFactor> factors() const override;

 private:
  CubeDigits digits_;
  std::vector<std::uint32_t> packed_;
};

}  // namespace apenet
