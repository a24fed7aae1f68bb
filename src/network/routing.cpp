#include "network/routing.hpp"

#include <algorithm>

#include "network/routing_factor.hpp"

namespace apenet {

std::vector<RoutingFactor> Routing::factors() const {
  return {};
}

CubeDigits::CubeDigits(const CubeShape& shape) : dims(shape.dims()) {
  std::uint32_t shift = 0;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const auto bits = static_cast<std::uint32_t>(std::bit_width(dims[d] - 1));
    of[d] = {dims[d], shift, (1U << bits) - 1, static_cast<std::uint32_t>(d)};
    for (std::uint32_t bit = shift; bit < shift + bits; ++bit) {
      dimension_of_bit[bit] = static_cast<std::uint8_t>(d);
    }
    shift += bits;
  }
  constexpr std::uint32_t no_dimension = ~0U;
  of[dims.size()] = {1, 0, 0, no_dimension};
  for (std::uint32_t bit = shift; bit < dimension_of_bit.size(); ++bit) {
    dimension_of_bit[bit] = static_cast<std::uint8_t>(dims.size());
  }
}

std::vector<std::uint32_t> CubeDigits::pack(const CubeShape& shape) const {
  std::vector<std::uint32_t> packed;
  packed.reserve(shape.node_count());
  for (NodeId node = 0; node < shape.node_count(); ++node) {
    std::uint32_t word = 0;
    std::size_t d = 0;
    for (const std::uint32_t coordinate : shape.coordinates(node)) word |= coordinate << of[d++].shift;
    packed.push_back(word);
  }
  return packed;
}

DimensionOrderRouting::DimensionOrderRouting(const CubeShape& shape, bool is_torus)
    : digits_(shape), packed_(digits_.pack(shape)), is_torus_(is_torus) {
  for (std::uint32_t& word : packed_) {
    std::uint32_t sum = 0;
    for (const CubeDigits::Digit& digit : digits_.of) sum += word >> digit.shift & digit.mask;
    if (sum % 2 != 0) word |= odd_sum;
  }
  const auto dimensions = static_cast<std::uint32_t>(digits_.dims.size());
  std::array<CubeTurns, CubeShape::max_dimensions + 1> turns;
  for (std::uint32_t d = 0; d <= dimensions; ++d) {
    const CubeDigits::Digit& digit = digits_.of[d];
    const std::int64_t farthest = digit.mask;
    turns[d] = {digit.mask << digit.shift, digit.shift,
                static_cast<std::uint32_t>(turns_.size()) + 2 * digit.mask};
    for (std::int64_t difference = -farthest; difference <= farthest; ++difference) {
      for (const bool is_odd : {false, true}) {
        const RouteStep step = d == dimensions ? RouteStep{2 * d, 0} : turn(d, difference, is_odd);
        turns_.push_back(static_cast<std::uint16_t>(step.port << 1U | step.channel_class));
      }
    }
  }
  for (std::size_t bit = 0; bit < turns_of_.size(); ++bit) {
    turns_of_[bit] = turns[digits_.dimension_of_bit[bit]];
  }
}

// From a router whose coordinates have an odd sum or not, towards a coordinate that differs by so much.
RouteStep DimensionOrderRouting::turn(std::uint32_t dimension, std::int64_t difference, bool is_odd) const {
  const bool is_behind = difference < 0;
  if (!is_torus_) return {is_behind ? CubeShape::minus_port(dimension) : CubeShape::plus_port(dimension), 0};
  const std::int64_t size = digits_.dims[dimension];
  const std::int64_t distance = is_behind ? difference + size : difference;  // going +
  const bool goes_minus = 2 * distance >= size + (is_odd ? 0 : 1);
  const bool wraps = is_behind != goes_minus;
  return {goes_minus ? CubeShape::minus_port(dimension) : CubeShape::plus_port(dimension), wraps ? 0U : 1U};
}

std::vector<RoutingFactor> DimensionOrderRouting::factors() const {
  const auto is_ring = [](std::uint32_t size) { return size > 1; };
  std::vector<RoutingFactor> factors;
  if (std::count_if(digits_.dims.begin(), digits_.dims.end(), is_ring) < 2) return factors;
  for (const std::uint32_t size : digits_.dims) {
    if (!is_ring(size)) continue;
    const CubeShape shape({size, 2});
    factors.push_back({is_torus_ ? make_torus(shape) : make_mesh(shape),
                       std::make_unique<DimensionOrderRouting>(shape, is_torus_)});
  }
  return factors;
}

DimensionOrderEntryRouting::DimensionOrderEntryRouting(const CubeShape& shape)
    : digits_(shape), packed_(digits_.pack(shape)) {
  const auto dimensions = static_cast<std::uint32_t>(digits_.dims.size());
  std::array<CubeTurns, CubeShape::max_dimensions + 1> turns;
  for (std::uint32_t d = 0; d < dimensions; ++d) {
    const std::uint32_t size = digits_.dims[d];
    const CubeDigits::Digit& digit = digits_.of[d];
    const auto same = static_cast<std::uint32_t>(steps_.size()) + size - 1;
    turns[d] = {digit.mask << digit.shift, digit.shift, same};
    for (std::uint32_t difference = 1; difference < 2 * size; ++difference) {  // and the size more than it is
      const bool is_behind = difference < size;
      const std::uint32_t distance = is_behind ? difference : difference - size;  // going +
      const std::uint32_t port = 2 * distance > size ? CubeShape::minus_port(d) : CubeShape::plus_port(d);
      steps_.emplace_back(RouteStep{port, is_behind ? 1U : 0U}, 2 * distance == size);
    }
  }
  turns[dimensions] = {0, 0, static_cast<std::uint32_t>(steps_.size())};
  steps_.emplace_back(RouteStep{2 * dimensions, 0}, false);
  for (std::size_t bit = 0; bit < turns_of_.size(); ++bit) {
    turns_of_[bit] = turns[digits_.dimension_of_bit[bit]];
  }
  steps_of_input_ = static_cast<std::uint32_t>(steps_.size());
  for (std::uint32_t port = 0; port < 2 * dimensions; ++port) {
    const std::uint32_t first = turns[port / 2].same + 1 - digits_.dims[port / 2];
    const std::uint32_t end = turns[port / 2].same + digits_.dims[port / 2];
    for (std::uint32_t c = 0; c < class_count(); ++c) {
      for (std::uint32_t step = 0; step < steps_of_input_; ++step) {
        const bool is_straight_on = step >= first && step < end;
        steps_.push_back(is_straight_on ? Step({port ^ 1U, c}, false) : steps_[step]);
      }
    }
  }
}

DimensionOrderEntryRouting::Input DimensionOrderEntryRouting::input(std::uint32_t port,
                                                                    std::uint32_t channel_class) const {
  if (port / 2 >= digits_.dims.size()) return {0};
  return {(1 + port * class_count() + channel_class) * steps_of_input_};
}

void DimensionOrderEntryRouting::route(const RouteQuery& query, RouteSteps& steps) const {
  const auto local_port = 2 * static_cast<std::uint32_t>(digits_.dims.size());
  const std::uint32_t input_port = query.is_injected ? local_port : query.input_port;
  const Step chosen = step(query.router, query.destination, input(input_port, query.input_class));
  const RouteStep only = chosen.step();
  steps.set_only(only);
  if (!chosen.is_tie()) return;
  steps.clear(RouteChoice::random);
  steps.add(only);
  steps.add({only.port ^ 1U, only.channel_class});
}

std::vector<RoutingFactor> DimensionOrderEntryRouting::factors() const {
  std::vector<RoutingFactor> factors;
  if (digits_.dims.size() < 2) return factors;
  for (const std::uint32_t size : digits_.dims) {
    if (size == 1) continue;
    const CubeShape ring({size});
    factors.push_back({make_torus(ring), std::make_unique<DimensionOrderEntryRouting>(ring)});
  }
  return factors;
}

}  // namespace apenet
