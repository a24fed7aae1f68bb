// FlitEngine: halting, taking packets back into their FIFOs, restarting. See docs/models/faults.md.
#include <algorithm>
#include <utility>

#include "kernel/check.hpp"
#include "network/flit/engine.hpp"

namespace apenet {

void FlitEngine::begin(Time /*zero*/) {
  if (retries_) retries_->begin();
}

FaultUse FlitEngine::fault_use() const {
  FaultUse use;
  if (!retries_) return use;
  for (const std::size_t index : spec_.links) {
    use.corrupted_packets += retries_->errors(index).corrupted;
    use.retransmitted_bytes += retries_->errors(index).retransmitted_bytes;
  }
  return use;
}

// The current cycle is not computed, so what its end would have delivered is taken back, too.
std::uint64_t FlitEngine::halt() {
  APENET_CHECK(spec_.keeps_numbers, "halted without allow_halts()");
  ++state_.halts;
  APENET_CHECK(state_.halts < max_halts, "halted %u times", max_halts);
  state_.is_awake = true;
  memo_.last_time = Time::never();
  const std::vector<std::uint32_t> taken = take_from_network();
  sources_.take_back(taken);
  sinks_.reset();
  std::fill(state_.head_times.begin(), state_.head_times.end(), Time::never());
  fabric_.flits_on_wires.clear();
  fabric_.credits_on_wires.clear();
  if (retries_) retries_->reset(fabric_.timing.cycle_from(simulation_.now()));
  if (simulation_.is_traced()) {
    for (const std::uint32_t index : taken) {
      const Packet& packet = fabric_.state.packets[index].packet;
      trace(NetworkTrace::taken_back, packet.source, packet);
    }
  }
  return taken.size();
}

// Collects the packets whose header has left its FIFO, in the order of injection, and gives back the room
// that they hold in ejection buffers.
std::vector<std::uint32_t> FlitEngine::take_from_network() {
  std::vector<bool> is_elsewhere = free_packets();
  sources_.for_each_waiting([&](std::uint32_t index) { is_elsewhere[index] = true; });
  std::vector<std::uint32_t> taken;
  for (std::uint32_t index = 0; index < is_elsewhere.size(); ++index) {
    if (is_elsewhere[index]) continue;
    taken.push_back(index);
    const bool is_delivered_later =
        index < state_.head_times.size() && state_.head_times[index] != Time::never();
    if (!is_delivered_later && !sinks_.is_entering(index)) continue;
    const Packet& packet = fabric_.state.packets[index].packet;
    sinks_.give_back(fabric_.port_of(packet.destination, packet.ejection_port), packet.wire_bytes);
  }
  std::sort(taken.begin(), taken.end(), [this](std::uint32_t one, std::uint32_t other) {
    return fabric_.state.numbers[one] < fabric_.state.numbers[other];
  });
  return taken;
}

void FlitEngine::restart(const Routing* routing, InjectionGate* gate) {
  const Routing& in_force = routing != nullptr ? *routing : *own_routing_;
  route_unit_ = FlitRouteUnit(in_force, fabric_, spec_.channel_selection);
  keep_bubbles(in_force);
  routers_ = make_flit_routers(fabric_, route_unit_);
  sockets_.reset();
  sources_.set_gate(gate);
  const std::vector<bool> is_free = free_packets();
  for (std::uint32_t index = 0; index < is_free.size(); ++index) {
    if (is_free[index]) continue;
    const FlitPacket& packet = fabric_.state.packets[index];
    fabric_.state.routes[index] = first_route(packet.packet, packet.length);
  }
  state_.is_awake = false;
  if (!is_quiescent()) wake(fabric_.timing.cycle_from(simulation_.now()));
}

std::uint64_t FlitEngine::messages_under_way() const {
  const std::vector<bool> is_free = free_packets();
  std::vector<std::pair<NodeId, std::uint64_t>> messages;
  for (std::uint32_t index = 0; index < is_free.size(); ++index) {
    const Packet& packet = fabric_.state.packets[index].packet;
    if (!is_free[index]) messages.emplace_back(packet.source, packet.message);
  }
  std::sort(messages.begin(), messages.end());
  return static_cast<std::uint64_t>(std::unique(messages.begin(), messages.end()) - messages.begin());
}

std::vector<bool> FlitEngine::free_packets() const {
  std::vector<bool> is_free(fabric_.state.packets.size());
  for (std::uint32_t i = state_.free_packet; i != FlitPacket::none; i = fabric_.state.packets[i].next)
    is_free[i] = true;
  return is_free;
}

}  // namespace apenet
