#include "network/flit/retries.hpp"

#include <algorithm>
#include <utility>

namespace apenet {

void FlitFabric::send_with_errors(std::size_t port_index, FlitCycle later, const FlitArrival& arrival) {
  retries->send(port_index, later, arrival);
}

FlitRetries::FlitRetries(FlitFabric& fabric, std::vector<Link> links, std::size_t link_count)
    : fabric_(fabric), links_(std::move(links)), errors_(fabric.simulation.seed(), link_count) {
  state_.next.resize(links_.size());
  counters_.lost.resize(links_.size());
}

void FlitRetries::send(std::size_t port_index, FlitCycle later, const FlitArrival& arrival) {
  const std::uint32_t wire = fabric_.port_table[port_index].wires.flit_wire;
  if (links_[port_index].bit_error_rate == 0) {
    fabric_.flits_on_wires.push_late(wire, later, arrival);
    return;
  }
  const FlitCycle due = fabric_.flits_on_wires.arrival_of(wire, later);
  const FlitCycle crossed = due - fabric_.flits_on_wires.delay(wire) + fabric_.timing.switch_traversal_cycles;
  state_.crossing.emplace(crossed, Crossing{port_index, due, arrival});
}

void FlitRetries::enter(const Crossing& flit) {
  const Link& link = links_[flit.port_index];
  FlitCycle& next = state_.next[flit.port_index];
  FlitCycle cycle = std::max(flit.due, next);
  if (flit.arrival.flit.is_head()) {
    const FlitPacketRoute& packet = fabric_.state.routes[flit.arrival.flit.packet()];
    const FlitCycle failures = errors_.draw_failures(link.number, link.bit_error_rate, packet.wire_bytes);
    const FlitCycle lost = failures * (packet.flits * link.flit_cycles + link.turnaround);
    counters_.lost[flit.port_index] += lost;
    cycle += lost;
  }
  next = cycle + link.flit_cycles;
  state_.held.emplace(cycle, Held{fabric_.port_table[flit.port_index].wires.flit_wire, flit.arrival});
}

void FlitRetries::tick(FlitCycle now) {
  while (!state_.crossing.empty() && state_.crossing.begin()->first <= now) {
    enter(state_.crossing.begin()->second);
    state_.crossing.erase(state_.crossing.begin());
  }
  while (!state_.held.empty() && fabric_.flits_on_wires.reaches(state_.held.begin()->first)) {
    const auto& [cycle, held] = *state_.held.begin();
    fabric_.flits_on_wires.push_at(held.wire, cycle, held.arrival);
    state_.held.erase(state_.held.begin());
  }
}

void FlitRetries::reset(FlitCycle cycle) {
  state_.crossing.clear();
  state_.held.clear();
  for (std::size_t i = 0; i < state_.next.size(); ++i) {
    FlitCycle& next = state_.next[i];
    if (next == 0) continue;
    const FlitCycle travel = fabric_.flits_on_wires.delay(fabric_.port_table[i].wires.flit_wire);
    counters_.lost[i] -= std::max<FlitCycle>(0, next - travel - cycle);
    next = 0;
  }
}

void FlitRetries::begin() {
  errors_.begin();
}

}  // namespace apenet
