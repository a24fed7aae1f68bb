#include "network/routing.hpp"

#include <algorithm>

#include "kernel/random.hpp"
#include "network/routing_factor.hpp"

namespace apenet {

std::vector<RoutingFactor> Routing::factors() const {
  return {};
}

std::uint32_t draw_step(std::uint32_t count, std::uint64_t seed, const Packet& packet, RouterId router) {
  const PhiloxBlock identity = {packet.source, packet.sequence, static_cast<std::uint32_t>(packet.message),
                                static_cast<std::uint32_t>(packet.message >> 32U)};
  const PhiloxKey key = {static_cast<std::uint32_t>(seed) ^ static_cast<std::uint32_t>(seed >> 32U), router};
  return static_cast<std::uint32_t>((std::uint64_t{philox4x32_10(identity, key)[0]} * count) >> 32U);
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
  dimension_of_bit[32] = static_cast<std::uint8_t>(dims.size());
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
