#include "network/routing/routing.hpp"

#include <algorithm>

#include "network/routing/routing_factor.hpp"

namespace apenet {

std::vector<RoutingFactor> Routing::factors() const {
  return {};
}

CubeDigits::CubeDigits(const CubeShape& shape) : dims(shape.dims()) {
  std::uint32_t shift = 0;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const auto bits = static_cast<std::uint32_t>(std::bit_width(dims[d] - 1));
    of[d] = {dims[d], shift, (1U << bits) - 1};
    for (std::uint32_t bit = shift; bit < shift + bits; ++bit) {
      dimension_of_bit[bit] = static_cast<std::uint8_t>(d);
    }
    shift += bits;
  }
  of[dims.size()] = {1, 0, 0};
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
    : digits_(shape), is_torus_(is_torus) {
  const std::vector<std::uint32_t> places = digits_.pack(shape);
  packed_.assign(places.begin(), places.end());
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

// The step from a router, whose coordinate sum is odd or even, along a dimension in which the destination's
// coordinate differs by `difference`.
RouteStep DimensionOrderRouting::turn(std::uint32_t dimension, std::int64_t difference, bool is_odd) const {
  const bool is_behind = difference < 0;
  if (!is_torus_) return {is_behind ? CubeShape::minus_port(dimension) : CubeShape::plus_port(dimension), 0};
  const std::int64_t size = digits_.dims[dimension];
  const std::int64_t distance = is_behind ? difference + size : difference;  // links in + direction
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
    : digits_(shape), packed_(digits_.pack(shape)) {}

void DimensionOrderEntryRouting::route(const RouteQuery& query, RouteSteps& steps) const {
  const std::uint32_t here = packed_[query.router];
  const std::uint32_t there = packed_[query.destination];
  const std::uint32_t dimension = digits_.dimension_of_bit[CubeDigits::first_difference(here, there)];
  if (dimension == digits_.dims.size()) {
    steps.set_only({2 * dimension, 0});
    return;
  }
  if (!query.is_injected && query.input_port / 2 == dimension) {
    steps.set_only({query.input_port ^ 1U, query.input_class});  // keep direction and class
    return;
  }
  const CubeDigits::Digit& digit = digits_.of[dimension];
  const std::uint32_t from = here >> digit.shift & digit.mask;
  const std::uint32_t to = there >> digit.shift & digit.mask;
  const std::uint32_t channel_class = from > to ? 1 : 0;
  const std::uint32_t distance = from > to ? to + digit.size - from : to - from;  // links in + direction
  const RouteStep plus{CubeShape::plus_port(dimension), channel_class};
  const RouteStep minus{CubeShape::minus_port(dimension), channel_class};
  if (2 * distance != digit.size) {
    steps.set_only(2 * distance < digit.size ? plus : minus);
    return;
  }
  steps.clear(RouteChoice::random);
  steps.add(plus);
  steps.add(minus);
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
