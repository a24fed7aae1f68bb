// Routing: which output, which class of virtual channels.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "kernel/check.hpp"
#include "kernel/random.hpp"
#include "network/packet.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

// What a routing may look at: where the packet is, where it goes, and by which channel it came.
struct RouteQuery {
  RouterId router = 0;
  NodeId destination = 0;
  std::uint32_t input_port = 0;   // the source's attachment while is_injected
  std::uint32_t input_class = 0;  // without meaning while is_injected
  bool is_injected = false;       // comes from a card: no link crossed yet
};

// One way on. The virtual channels of a link are split evenly into class_count() classes; the packet takes
// its lane, by the card's channel, within this one.
struct RouteStep {
  std::uint32_t port;
  std::uint32_t channel_class;
};

// How an engine chooses among several steps.
//   only      there is one
//   random    each with equal probability, drawn by draw_step; the packet then waits for that one
//   adaptive  the step whose virtual channel has most room, of equals the first. The last step is the escape:
//             a packet that waits must be able to take it as soon as it can
enum class RouteChoice : std::uint8_t { only, random, adaptive };

// The steps that a routing offers. A plain array, not cleared: it is filled at every hop of every packet.
class RouteSteps {
 public:
  // Both ways along each of six dimensions, and an escape.
  static constexpr std::uint32_t max_count = 13;

  void set_only(RouteStep step) {
    steps_[0] = step;
    count_ = 1;
    choice_ = RouteChoice::only;
  }
  // No step: the destination cannot be reached from here.
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

// Where packets go. A routing is a function: equal queries give equal steps, whatever happened before.
// At the destination's router it offers the destination's attachment, alone.
class Routing {
 public:
  virtual ~Routing() = default;
  [[nodiscard]] virtual std::uint32_t class_count() const = 0;
  virtual void route(const RouteQuery& query, RouteSteps& steps) const = 0;

  // Packets of one (source, destination, channel) follow one path through the same buffers, and so stay in
  // order. Without it the network puts them back in order at the destination.
  [[nodiscard]] virtual bool keeps_order() const = 0;
  // The steps depend on the router and the destination alone: engines need not say, and the deadlock check
  // need not enumerate, where the packet came from.
  [[nodiscard]] virtual bool is_memoryless() const = 0;
  // Smaller networks such that a cycle of dependencies here implies one in at least one of them; none: the
  // deadlock check looks at the whole. Whoever overrides this owes the proof, at the override.
  [[nodiscard]] virtual std::vector<RoutingFactor> factors() const;
};

// Random bits of a packet, for the steps of its way that are drawn: from the seed and the packet's identity
// (source, message, sequence), so that they depend on nothing else that happens.
[[nodiscard]] inline std::uint32_t draws_of(std::uint64_t seed, const Packet& packet) {
  const std::uint64_t place = mix64(seed ^ (std::uint64_t{packet.source} << 32U | packet.sequence));
  return static_cast<std::uint32_t>(mix64(place ^ packet.message) >> 32U);
}
// Which of several equal steps it takes. first_port: of the first of them. Either way along a dimension is a
// bit of its own: so those of several dimensions are independent. Less than 2^-28 from uniform.
[[nodiscard]] constexpr std::uint32_t draw_step(std::uint32_t count, std::uint32_t draws,
                                                std::uint32_t first_port) {
  return std::rotr(draws, static_cast<int>(first_port / 2)) % count;
}

// A node's coordinates in one word: at most 2^24 nodes in at most 6 dimensions are at most 30 bits.
struct CubeDigits {
  struct Digit {
    std::uint32_t size = 0;
    std::uint32_t shift = 0;
    std::uint32_t mask = 0;
  };

  explicit CubeDigits(const CubeShape& shape);
  [[nodiscard]] std::vector<std::uint32_t> pack(const CubeShape& shape) const;  // every node

  std::vector<std::uint32_t> dims;
  // One more: a destination that differs in no bit is reached, through the port behind those of the
  // dimensions.
  std::array<Digit, CubeShape::max_dimensions + 1> of{};
  // Of a bit of a packed word; beyond the digits: no dimension, the destination is reached.
  std::array<std::uint8_t, 32> dimension_of_bit{};

  // The lowest bit in which two packed words differ, or the highest bit, which is in no digit.
  [[nodiscard]] static std::uint32_t first_difference(std::uint32_t here, std::uint32_t there) {
    return static_cast<std::uint32_t>(__builtin_ctz((here ^ there) | 1U << 31U));
  }
};

// Where a table has the steps of one dimension, by the difference of two coordinates.
struct CubeTurns {
  std::uint32_t mask = 0;  // of the dimension's digit in a packed word
  std::uint32_t shift = 0;
  std::uint32_t same = 0;  // the step from a coordinate to itself

  // Modulo 2^32: to be added.
  [[nodiscard]] std::uint32_t difference(std::uint32_t here, std::uint32_t there) const {
    const std::uint32_t difference = (there & mask) - (here & mask);
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(difference) >> shift);
  }
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
  void route(const RouteQuery& query, RouteSteps& steps) const override {
    steps.set_only(step(query.router, query.destination));
  }
  [[nodiscard]] bool keeps_order() const override { return true; }
  [[nodiscard]] bool is_memoryless() const override { return true; }
  // One network of k x 2 nodes for each dimension of k nodes. Proof: no packet returns to a lower dimension,
  // so a cycle stays within one dimension and, since links of a dimension only lead along their own ring,
  // within one ring. There a step depends on the positions of router and destination along the ring and, for
  // ties, on whether the sum of the other coordinates is even. The rings (., 0) and (., 1) of the factor are
  // those two cases.
  [[nodiscard]] std::vector<RoutingFactor> factors() const override;

  // The one step, for engines that hop by it: looked up, since they ask at every hop of every packet.
  [[nodiscard]] RouteStep step(RouterId router, NodeId destination) const {
    const std::uint32_t here = packed_[router];
    const std::uint32_t there = packed_[destination];
    const CubeTurns& turns = turns_of_[CubeDigits::first_difference(here, there)];
    const std::uint32_t turn = turns_[turns.same + 2 * turns.difference(here, there) + (here >> odd_sum_bit)];
    return {turn >> 1U, turn & 1U};
  }

 private:
  static constexpr unsigned odd_sum_bit = 31;
  static constexpr std::uint32_t odd_sum = 1U << odd_sum_bit;

  [[nodiscard]] RouteStep turn(std::uint32_t dimension, std::int64_t difference, bool is_odd) const;

  CubeDigits digits_;
  std::vector<std::uint32_t> packed_;  // coordinates of each node; odd_sum beside them: all of it in one word
  std::vector<std::uint16_t> turns_;   // port << 1 | class, by the coordinates' difference and odd_sum
  std::array<CubeTurns, 32> turns_of_{};  // by bit of the packed word
  bool is_torus_;
};

// Dimension order on a torus with the class of a ring decided on entering it (`dim_order_torus` of BookSim2;
// Dally and Seitz, 1987): class 1 if the coordinate is greater than the destination's, else class 0, for both
// directions, kept for the whole ring. Half-way around an even ring + and - are equally probable.
//
// Why that is free of deadlock: of the packets that go +, those of class 1 cross the wrap-around link, and
// end before the router where they entered; those of class 0 do not cross it. So in neither class a chain of
// packets, each waiting for the next one's channel, can close. Of those that go -, it is class 0 that
// crosses.
class DimensionOrderEntryRouting final : public Routing {
 public:
  explicit DimensionOrderEntryRouting(const CubeShape& shape);
  [[nodiscard]] std::uint32_t class_count() const override { return 2; }
  void route(const RouteQuery& query, RouteSteps& steps) const override;
  [[nodiscard]] const std::vector<std::uint32_t>& dims() const { return digits_.dims; }
  [[nodiscard]] bool keeps_order() const override { return false; }
  [[nodiscard]] bool is_memoryless() const override { return false; }
  // One ring for each dimension. Proof: no packet returns to a lower dimension, so a cycle stays within one
  // dimension and within one of its rings. There a step depends on the positions of router and destination
  // along the ring, on whether the packet has moved along it already, and on its class; a packet that enters
  // from another dimension is as one injected.
  [[nodiscard]] std::vector<RoutingFactor> factors() const override;

 private:
  CubeDigits digits_;
  std::vector<std::uint32_t> packed_;
};

}  // namespace apenet
