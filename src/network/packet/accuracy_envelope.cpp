#include "network/packet/accuracy_envelope.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "kernel/check.hpp"
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

// Capacity of a buffer: whole packets, unless a packet may span buffers.
std::int64_t lane_bytes_of(const NetworkParameters& parameters) {
  const std::int64_t buffer_bytes = parameters.description.buffer_bytes;
  const std::int64_t packet_bytes = std::max<std::int64_t>(parameters.max_packet_wire_bytes, 1);
  return buffer_bytes < packet_bytes ? buffer_bytes : buffer_bytes / packet_bytes * packet_bytes;
}

double ratio(Time part, Time whole) {
  return whole == Time::zero() ? 0 : static_cast<double>(part.ps()) / static_cast<double>(whole.ps());
}

constexpr std::int64_t long_flits = 8;

// Begins each warning.
constexpr const char* engine = "packet engine: latencies ";

std::string percent(double value) {
  return std::to_string(std::lround(value)) + " %";
}

}  // namespace

const AccuracyEnvelope::Row AccuracyEnvelope::rows[] = {
#include "network/packet/accuracy_envelope.inc"
};

const AccuracyEnvelope::Row& AccuracyEnvelope::row(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(rows), std::end(rows), [name](const Row& row) { return row.name == name; });
  APENET_CHECK(found != std::end(rows), "accuracy_envelope.csv has no class '%s'", std::string(name).c_str());
  return *found;
}

const AccuracyEnvelope::Row& AccuracyEnvelope::row_of(const NetworkParameters& parameters) {
  const NetworkDescription& network = parameters.description;
  const std::int64_t packet_bytes = parameters.max_packet_wire_bytes;
  const bool is_short = packet_bytes < long_flits * flit_bytes_of(network);
  const bool holds_two = network.buffer_bytes >= 2 * packet_bytes;
  if (network.switching == NetworkDescription::Switching::wormhole) {
    if (network.buffer_bytes < packet_bytes) return row("wormhole: buffers below a packet");
    if (is_short)
      return row(holds_two ? "wormhole: short packets" : "wormhole: buffers below two short packets");
    return row("wormhole");
  }
  if (!holds_two) return row("buffers below two packets");
  if (!is_one_lane(network)) return row("packets take any lane");
  const bool pauses = std::any_of(network.links.begin(), network.links.end(), [&](const auto& link) {
    return idle_between_packets(network, link.rate) > Time::zero();
  });
  if (pauses) {
    constexpr std::int64_t amortising_flits = 64;
    const bool amortises = packet_bytes >= amortising_flits * flit_bytes_of(network);
    return row(amortises ? "pauses between long packets" : "pauses between packets");
  }
  return row(is_short ? "short packets" : "long packets");
}

AccuracyEnvelope::AccuracyEnvelope(const NetworkParameters& parameters)
    : row_(row_of(parameters)),
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

Time AccuracyEnvelope::use(std::size_t stage, Time busy, std::uint64_t packets,
                           std::uint64_t wire_bytes) const {
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

Time AccuracyEnvelope::waiting(Time use, Time now) {
  constexpr double most_share = 0.99;
  const double share = std::min(ratio(use, now), most_share);
  return Time::from_ps(std::llround(static_cast<double>(use.ps()) * share / (2 * (1 - share))));
}

std::vector<std::string> AccuracyEnvelope::warnings(const Congestion& congestion) const {
  std::vector<std::string> warnings;
  warn_of_load(congestion, warnings);
  if (warnings.empty()) warn_of_unseen(congestion, warnings);
  return warnings;
}

void AccuracyEnvelope::warn_of_load(const Congestion& congestion, std::vector<std::string>& warnings) const {
  const double use_percent = 100 * ratio(std::min(congestion.busiest, congestion.now), congestion.now);
  const double waiting_percent = 100 * ratio(congestion.waiting, congestion.moving);
  const bool exceeds_both =
      use_percent > row_.both_use_percent && waiting_percent > row_.both_waiting_percent;
  if (use_percent <= row_.use_percent && waiting_percent <= row_.waiting_percent && !exceeds_both) return;
  constexpr double tolerable_slowdown = 1.1;
  const std::string advice = flit_slowdown_ <= tolerable_slowdown
                                 ? std::string("; check with --engine flit")
                                 : "; the flit engine is no reference here: its links would be " +
                                       percent(100 * (flit_slowdown_ - 1)) + " slower than this machine's";
  warnings.push_back(std::string(engine) + "may be off by up to " +
                     percent(std::max(-row_.lowest_percent, row_.highest_percent)) + " (" +
                     std::string(row_.name) + ")" + advice);
}

void AccuracyEnvelope::warn_of_unseen(const Congestion& congestion,
                                      std::vector<std::string>& warnings) const {
  constexpr double tolerable = 0.05;  // the other half of 10 % is for deviations within the limits of load
  const Time own = congestion.moving + congestion.waiting;
  // A link spaces its packets out, so they seldom wait for a port.
  const double at_ports =
      ratio(congestion.ports_only, own) * (flit_port_slowdown_ - 1) +
      ratio(congestion.unseen_at_ports, own) * ratio(congestion.ports_only, congestion.ejecting);
  const double extra = at_ports + ratio(congestion.unseen_at_links, own);
  if (extra <= tolerable) return;
  const bool is_at_ports = at_ports > extra / 2;
  warnings.push_back(std::string(engine) + "are about " + percent(100 * extra / (1 + extra)) + " too low" +
                     (is_at_ports ? " if a node's port carries one flit per cycle, as with --engine flit"
                                  : " (idle lanes); check with --engine flit"));
}

}  // namespace apenet::packet
