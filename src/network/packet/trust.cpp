#include "network/packet/trust.hpp"

#include <algorithm>
#include <cmath>

#include "network/flit/timing.hpp"

namespace apenet::packet {
namespace {

bool is_one_lane(const NetworkDescription& network) {
  return network.channel_selection == NetworkDescription::ChannelSelection::lane;
}

// A lane leaves the output idle between its packets, while route and channel of the next header are found,
// less what the slower clock of the link hides.
Time idle_between_packets(const NetworkDescription& network, const DataRate& rate) {
  const RouterPipeline& pipeline = network.pipeline;
  if (pipeline.clock_hz <= 0 || !is_one_lane(network)) return Time::zero();
  const ClockDomain clock{pipeline.clock_hz};
  const std::int64_t cycle_ps = clock.cycles(1).ps();  // rounded up: whole cycles are those nearest
  const std::int64_t flit_cycles = (rate.duration(flit_bytes_of(network)).ps() + cycle_ps / 2) / cycle_ps;
  const std::int64_t stages = pipeline.routing_delay_cycles + pipeline.vc_allocation_delay_cycles;
  return clock.cycles(std::max<std::int64_t>(stages - std::max<std::int64_t>(flit_cycles - 1, 0), 0));
}

// From a header's grant until its credit serves another one (packet::Wormhole has the same time).
Time credit_loop(const NetworkDescription& network, const LinkDescription& link) {
  const RouterPipeline& pipeline = network.pipeline;
  if (pipeline.clock_hz <= 0 || !is_one_lane(network)) return Time::zero();
  return link.latency + network.router_latency + link.rate.duration(flit_bytes_of(network)) +
         network.credit_latency +
         ClockDomain{pipeline.clock_hz}.cycles(pipeline.switch_traversal_delay_cycles);
}

// What a buffer holds: whole packets, unless a packet may span buffers.
std::int64_t lane_bytes_of(const NetworkParameters& parameters) {
  const std::int64_t buffer_bytes = parameters.description.buffer_bytes;
  const std::int64_t packet_bytes = std::max<std::int64_t>(parameters.max_packet_wire_bytes, 1);
  return buffer_bytes < packet_bytes ? buffer_bytes : buffer_bytes / packet_bytes * packet_bytes;
}

double ratio(Time part, Time whole) {
  return whole == Time::zero() ? 0 : static_cast<double>(part.ps()) / static_cast<double>(whole.ps());
}

constexpr std::int64_t long_flits = 8;

std::string percent(double share) {
  return std::to_string(std::lround(100 * share)) + " %";
}

}  // namespace

Trust::Limits Trust::limits_of(const NetworkParameters& parameters) {
  const NetworkDescription& network = parameters.description;
  const std::int64_t packet_bytes = parameters.max_packet_wire_bytes;
  if (network.switching == NetworkDescription::Switching::wormhole) {
    if (network.buffer_bytes < packet_bytes) {
      return {
          "a buffer holds less than a packet",
          "up to 41 % too low, 6 % in the median; the packet engine saturates at up to 1.7 times the load",
          0.25,
          0.3,
          0.2,
          0.1};
    }
    const bool is_short = packet_bytes < long_flits * flit_bytes_of(network);
    if (is_short && network.buffer_bytes < 2 * packet_bytes) {
      return {"wormhole switching, a buffer holds less than two short packets",
              "up to 28 % too low",
              0.1,
              0.05,
              1,
              1};
    }
    if (is_short) {
      return {
          "wormhole switching, short packets",
          "up to 31 % too low, 5 % in the median; the packet engine saturates at up to 1.1 times the load",
          0.4,
          0.15,
          0.15,
          0.04};
    }
    return {"wormhole switching",
            "up to 31 % too low, 9 % in the median; the packet engine saturates at up to 1.1 times the load",
            0.75,
            0.3,
            0.4,
            0.08};
  }
  if (network.buffer_bytes < 2 * packet_bytes) {
    return {"a buffer holds less than two packets",
            "from 30 % too low to 32 % too high, 12 % too low in the median",
            0.05,
            0.04,
            1,
            1};
  }
  if (!is_one_lane(network)) {
    return {"packets take any lane", "up to 40 % too low, 15 % in the median", 0.25, 0.1, 1, 1};
  }
  const bool idles = std::any_of(network.links.begin(), network.links.end(), [&](const auto& link) {
    return idle_between_packets(network, link.rate) > Time::zero();
  });
  constexpr std::int64_t amortising_flits = 64;
  if (idles && packet_bytes >= amortising_flits * flit_bytes_of(network)) {
    return {"routers pause between long packets", "up to 12 % too low", 0.5, 1, 1, 1};
  }
  if (idles) {
    return {
        "routers pause between the packets of a virtual channel",
        "up to 38 % too low, 7 % in the median; beyond 90 % of use 23 % in the median, and the flit engine "
        "may be saturated",
        0.55,
        0.1,
        0.45,
        0.025};
  }
  if (packet_bytes < long_flits * flit_bytes_of(network)) {
    return {"short packets", "up to 20 % too low", 0.5, 0.2, 1, 1};
  }
  return {"long packets", "from 14 % too low to 22 % too high near saturation", 0.9, 0.7, 1, 1};
}

Trust::Trust(const NetworkParameters& parameters)
    : limits_(limits_of(parameters)),
      flit_slowdown_(flit_slowdown(parameters.description)),
      flit_port_slowdown_(flit_port_slowdown(parameters.description)),
      port_rate_(parameters.description.local_rate),
      lane_bytes_(lane_bytes_of(parameters)) {
  const NetworkDescription& network = parameters.description;
  for (const LinkDescription& link : network.links)
    lanes_.push_back({idle_between_packets(network, link.rate), credit_loop(network, link)});
  lanes_.push_back({idle_between_packets(network, network.local_rate), Time::zero(), true});
  lanes_.push_back({Time::zero(), Time::zero()});  // injection is no output of a router
}

Time Trust::use(std::size_t stage, Time busy, std::uint64_t packets, std::uint64_t wire_bytes) const {
  const Lane& lane = lanes_[stage];
  const auto bytes = static_cast<std::int64_t>(wire_bytes);
  Time moving = busy;
  if (lane.is_port) {
    const double port_ps = static_cast<double>(port_rate_.duration(bytes).ps()) * flit_port_slowdown_;
    moving = std::max(moving, Time::from_ps(std::llround(port_ps)));
  }
  return std::max(moving + lane.idle_after_packet * static_cast<std::int64_t>(packets),
                  lane.credit_loop * (bytes / lane_bytes_));
}

Time Trust::waiting(Time use, Time now) {
  constexpr double most_share = 0.99;
  const double share = std::min(ratio(use, now), most_share);
  return Time::from_ps(std::llround(static_cast<double>(use.ps()) * share / (2 * (1 - share))));
}

std::vector<std::string> Trust::warnings(const Congestion& congestion) const {
  std::vector<std::string> warnings;
  warn_of_load(congestion, warnings);
  if (warnings.empty()) warn_of_unseen(congestion, warnings);
  return warnings;
}

void Trust::warn_of_load(const Congestion& congestion, std::vector<std::string>& warnings) const {
  const double use = ratio(std::min(congestion.busiest, congestion.now), congestion.now);
  const double waiting = ratio(congestion.waiting, congestion.moving);
  const bool exceeds_both = use > limits_.use_of_both && waiting > limits_.waiting_of_both;
  if (use <= limits_.use && waiting <= limits_.waiting && !exceeds_both) return;
  constexpr double tolerable_slowdown = 1.1;
  const std::string where_to_look =
      flit_slowdown_ <= tolerable_slowdown
          ? "; compare with --engine flit)"
          : "; the flit engine is no reference here: its links would be " + percent(flit_slowdown_ - 1) +
                " slower than this machine's, since router.flit_bytes is not what they move in whole cycles)";
  warnings.push_back("the busiest output of a router was used " + percent(use) +
                     " of the time, and waiting added " + percent(waiting) +
                     " to the packets' own times: a packet's latency may deviate by more than 10 %, " +
                     limits_.deviation + " (" + limits_.kind + where_to_look);
}

void Trust::warn_of_unseen(const Congestion& congestion, std::vector<std::string>& warnings) const {
  constexpr double tolerable = 0.05;  // the other half of 10 % is for deviations within the limits of load
  const Time own = congestion.moving + congestion.waiting;
  // What comes from a link has been spaced out by it, and seldom waits for a port.
  const double at_ports =
      ratio(congestion.ports_only, own) * (flit_port_slowdown_ - 1) +
      ratio(congestion.unseen_at_ports, own) * ratio(congestion.ports_only, congestion.ejecting);
  const double extra = at_ports + ratio(congestion.unseen_at_links, own);
  if (extra <= tolerable) return;
  std::string why = "a packet's latency may deviate by more than 10 %, about " +
                    percent(extra / (1 + extra)) + " too low in the mean, ";
  if (at_ports > extra / 2) {
    why +=
        "if the flit engine were right; it is no reference here: its ports to the nodes carry at most a flit "
        "per cycle and would be " +
        percent(flit_port_slowdown_ - 1) + " slower than this machine's";
  } else {
    why += "since it does not wait while a lane idles between its packets (compare with --engine flit)";
  }
  warnings.push_back(why);
}

}  // namespace apenet::packet
