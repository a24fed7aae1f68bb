#include "network/packet/trust.hpp"

#include <algorithm>
#include <cmath>

#include "network/flit/timing.hpp"

namespace apenet::packet {
namespace {

bool is_one_lane(const NetworkDescription& network) {
  return network.channel_selection == NetworkDescription::ChannelSelection::lane;
}

// A card channel with one lane leaves the output idle between its packets, while route and channel of the
// next header are found, less what the slower clock of the link hides.
Time idle_between_packets(const NetworkDescription& network, const DataRate& rate) {
  const RouterPipeline& pipeline = network.pipeline;
  if (pipeline.clock_hz <= 0 || !is_one_lane(network)) return Time::zero();
  const ClockDomain clock{pipeline.clock_hz};
  const std::int64_t cycle_ps = clock.cycles(1).ps();  // rounded up: whole cycles are those nearest
  const std::int64_t flit_cycles = (rate.duration(flit_bytes_of(network)).ps() + cycle_ps / 2) / cycle_ps;
  const std::int64_t stages = pipeline.routing_delay_cycles + pipeline.vc_allocation_delay_cycles;
  return clock.cycles(std::max<std::int64_t>(stages - std::max<std::int64_t>(flit_cycles - 1, 0), 0));
}

// The flits of long packets amortise what the allocators lose. Where packets are short, or spread over
// several lanes, the packet engine is too fast.
double measured_limit(const NetworkParameters& parameters) {
  const NetworkDescription& network = parameters.description;
  if (network.buffer_bytes <= parameters.max_packet_wire_bytes) return 0.1;
  const bool idles = std::any_of(network.links.begin(), network.links.end(), [&](const auto& link) {
    return idle_between_packets(network, link.rate) > Time::zero();
  });
  if (idles) return 0.5;
  constexpr std::uint32_t long_flits = 8;
  const bool is_long = parameters.max_packet_wire_bytes >= long_flits * flit_bytes_of(network);
  return is_long && is_one_lane(network) ? 1 : 0.3;
}

std::string percent(double share) {
  return std::to_string(std::lround(100 * share)) + " %";
}

}  // namespace

Trust::Trust(const NetworkParameters& parameters)
    : trusted_use_(measured_limit(parameters)), flit_slowdown_(flit_slowdown(parameters.description)) {
  const NetworkDescription& network = parameters.description;
  for (const LinkDescription& link : network.links)
    idle_after_packet_.push_back(idle_between_packets(network, link.rate));
  idle_after_packet_.push_back(idle_between_packets(network, network.local_rate));
  idle_after_packet_.push_back(Time::zero());  // injection is no output of a router
}

std::vector<std::string> Trust::warnings(Time busiest, Time now) const {
  const double use = now == Time::zero()
                         ? 0
                         : static_cast<double>(std::min(busiest, now).ps()) / static_cast<double>(now.ps());
  if (use <= trusted_use_) return {};
  constexpr double tolerable_slowdown = 1.1;
  const std::string where_to_look =
      flit_slowdown_ <= tolerable_slowdown
          ? " (--engine flit)"
          : ", which is no reference here: its links would be " + percent(flit_slowdown_ - 1) +
                " slower than this machine's, since router.flit_bytes is not what they move in whole cycles";
  return {"the busiest link or port of a router was used " + percent(use) + " of the time: above " +
          percent(trusted_use_) +
          " the packet engine's latencies may deviate by more than 10 % from the flit engine's" +
          where_to_look};
}

}  // namespace apenet::packet
