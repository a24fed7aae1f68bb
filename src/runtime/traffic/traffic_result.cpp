#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/traffic/traffic_run.hpp"

namespace apenet {

TrafficPoint TrafficRun::result() const {
  TrafficPoint point;
  std::uint64_t arrived = 0;
  std::uint32_t least = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t most = 0;
  std::uint32_t members = 0;
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    if (!number_of_.empty() && number_of_[node] == no_node) continue;
    ++members;
    arrived += nodes_[node].arrived();
    least = std::min(least, nodes_[node].arrived());
    most = std::max(most, nodes_[node].arrived());
  }
  const double flits_per_packet = static_cast<double>(options_.packet_flits) *
                                  static_cast<double>(link_flit_cycles_) /
                                  static_cast<double>(options_.measure_cycles);
  point.offered = options_.load;
  point.accepted = static_cast<double>(arrived) * flits_per_packet / static_cast<double>(members);
  point.least_accepted = least * flits_per_packet;
  point.most_accepted = most * flits_per_packet;
  point.packets = drained_;
  if (drained_ > 0) {
    const auto count = static_cast<double>(drained_);
    point.packet_latency_cycles = in_cycles(latency_ps_) / count;
    point.network_latency_cycles = in_cycles(latency_ps_ - wait_ps_) / count;
    point.min_latency_cycles = in_cycles(min_ps_);
    point.max_latency_cycles = in_cycles(max_ps_);
    point.hops = static_cast<double>(hops_) / count;
  }
  point.cycles = cycle_;
  for (std::uint32_t link = 0; link < network_->link_count(); ++link) {
    const LinkStatistics use = network_->link_statistics(link);
    point.link_flits += use.wire_bytes / timing_.flit_bytes;
  }
  constexpr double least_accepted = 0.95;
  constexpr double most_waiting = 2;
  const double wait = point.packet_latency_cycles - point.network_latency_cycles;
  point.is_saturated =
      is_behind() || drained_ < injected_ ||
      static_cast<double>(arrived) < least_accepted * static_cast<double>(injected_ - queued_) ||
      wait > most_waiting * point.network_latency_cycles;
  point.warnings = warnings(point);
  return point;
}

// Warnings of the engine, and those that the numbers alone do not show.
std::vector<std::string> TrafficRun::warnings(const TrafficPoint& point) const {
  std::vector<std::string> said = network_->warnings();
  // Ports between router and card saturate too, and a crossbar has no other links.
  if (is_packet_engine_ && point.is_saturated && said.empty()) {
    said.emplace_back("packet engine: the network is saturated; check with --engine flit");
  }
  if (drained_ == 0) {
    said.emplace_back("no packet of the window arrived, so latencies and hops are reported as 0");
  }
  if ((is_behind() || drained_ < injected_) && network_->fault_use().events > 0) {
    const std::int64_t stopped = std::llround(in_cycles(reconfiguration_.ps()));
    said.push_back("every fault stops the network for network.reconfiguration_us, " +
                   std::to_string(stopped) + " cycles, and not all packets of the window have arrived since");
  }
  return said;
}

}  // namespace apenet
