#include "network/flit/retries.hpp"

#include <algorithm>
#include <utility>

namespace apenet {

void FlitFabric::send_with_errors(std::size_t port_index, FlitCycle later, const FlitArrival& arrival) {
  retries->send(port_index, later, arrival);
}

FlitRetries::FlitRetries(FlitFabric& fabric, std::vector<Link> links, std::size_t link_count)
    : fabric_(fabric),
      links_(std::move(links)),
      states_(links_.size()),
      errors_(fabric.simulation.seed(), link_count) {}

void FlitRetries::send(std::size_t port_index, FlitCycle later, const FlitArrival& arrival) {
  const std::uint32_t wire = fabric_.port_table[port_index].wires.flit_wire;
  if (links_[port_index].bit_error_rate == 0) {
    fabric_.flits_on_wires.push_late(wire, later, arrival);
    return;
  }
  const FlitCycle due = fabric_.flits_on_wires.arrival_of(wire, later);
  const FlitCycle crossed = due - fabric_.flits_on_wires.delay(wire) + fabric_.timing.switch_traversal_cycles;
  crossing_.emplace(crossed, Crossing{port_index, due, arrival});
}

void FlitRetries::enter(const Crossing& flit) {
  const Link& link = links_[flit.port_index];
  State& state = states_[flit.port_index];
  FlitCycle cycle = std::max(flit.due, state.next);
  if (flit.arrival.flit.is_head()) {
    const FlitPacketRoute& packet = fabric_.routes[flit.arrival.flit.packet()];
    const FlitCycle failures = errors_.draw_failures(link.number, link.bit_error_rate, packet.wire_bytes);
    const FlitCycle lost = failures * (packet.flits * link.flit_cycles + link.turnaround);
    state.lost += lost;
    cycle += lost;
  }
  state.next = cycle + link.flit_cycles;
  held_.emplace(cycle, Held{fabric_.port_table[flit.port_index].wires.flit_wire, flit.arrival});
}

void FlitRetries::tick(FlitCycle now) {
  while (!crossing_.empty() && crossing_.begin()->first <= now) {
    enter(crossing_.begin()->second);
    crossing_.erase(crossing_.begin());
  }
  while (!held_.empty() && fabric_.flits_on_wires.reaches(held_.begin()->first)) {
    const auto& [cycle, held] = *held_.begin();
    fabric_.flits_on_wires.push_at(held.wire, cycle, held.arrival);
    held_.erase(held_.begin());
  }
}

void FlitRetries::reset(FlitCycle cycle) {
  crossing_.clear();
  held_.clear();
  for (std::size_t i = 0; i < states_.size(); ++i) {
    State& state = states_[i];
    if (state.next == 0) continue;
    const FlitCycle travel = fabric_.flits_on_wires.delay(fabric_.port_table[i].wires.flit_wire);
    state.lost -= std::max<FlitCycle>(0, state.next - travel - cycle);
    state.next = 0;
  }
}

void FlitRetries::begin() {
  errors_.begin();
}

}  // namespace apenet
