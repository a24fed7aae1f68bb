// PacketEngine: halting, taking packets back into their FIFOs, restarting. See docs/models/faults.md.
#include <algorithm>
#include <utility>

#include "kernel/check.hpp"
#include "network/packet/engine.hpp"

namespace apenet {

void PacketEngine::begin(Time /*zero*/) {
  if (errors_) errors_->begin();
}

FaultUse PacketEngine::fault_use() const {
  FaultUse use;
  if (!errors_) return use;
  for (const std::uint32_t output : spec_.links) {
    use.corrupted_packets += errors_->link(output).corrupted;
    use.retransmitted_bytes += errors_->link(output).retransmitted_bytes;
  }
  return use;
}

// Go-back-N: the receiver drops a corrupted packet and all that follow until the packet comes again. The link
// passes no other packet from the first transmission to the good one. Returns when the good header leaves.
Time PacketEngine::pass_errors(std::uint32_t output_index, const Flight& flight) {
  const Stage& stage = stages_[outputs_[output_index].spec.stage];
  const Time duration = stage.spec.serialisation.duration(flight.wire_bytes);
  const Time turnaround = (stage.spec.latency + spec_.router_latency) * 2;
  Time header_out = simulation_.now();
  for (std::uint32_t failures =
           errors_->draw_failures(output_index, stage.spec.bit_error_rate, flight.wire_bytes);
       failures > 0; --failures) {
    header_out = std::max(header_out + duration, flight.tail_in + stage.spec.tail_latency) + turnaround;
  }
  return header_out;
}

std::uint64_t PacketEngine::halt() {
  APENET_CHECK(spec_.keeps_numbers, "halted without allow_halts()");
  state_.control.run.value += std::uint64_t{1} << run_shift;
  APENET_CHECK(state_.control.run != 0, "halted %llu times", 1ULL << (64U - run_shift));
  state_.control.is_halted = true;
  const std::vector<std::uint32_t> taken = take_back();
  for (std::uint32_t queue = spec_.layout.first_injection_queue; queue < spec_.layout.first_ejection_buffer;
       ++queue)
    reset_injection(queue);
  // Youngest first, each to the front of its queue, so that the oldest becomes the head.
  for (auto flight_index = taken.rbegin(); flight_index != taken.rend(); ++flight_index) {
    Flight& flight = state_.flights[*flight_index];
    const std::uint32_t queue_index = spec_.layout.injection_queue(flight.source, flight.channel);
    Queue& queue = state_.queues[queue_index];
    // A packet whose tail is still in the FIFO keeps its room there, and its DMA may still be running.
    flight.is_resent = queue.returning_bytes == 0;
    flight.ready = simulation_.now();
    flight.tail_in = flight.is_resent ? simulation_.now() : queue.free_at;
    queue.returning_bytes = 0;
    flight.hops = 0;
    flight.next = queue.head;
    if (queue.head == none) queue.tail = *flight_index;
    queue.head = *flight_index;
    choose_injection(flight);
    if (simulation_.is_traced()) trace(NetworkTrace::taken_back, Time::zero(), flight.source, flight);
  }
  reset_routers();
  check_injection_room();
  return taken.size();
}

// Collects the packets that have left their FIFOs, in the order of injection, and gives back the room that
// they hold in ejection buffers.
std::vector<std::uint32_t> PacketEngine::take_back() {
  enum class Place : std::uint8_t { ejection, router, fifo, unused };
  std::vector<Place> places(state_.flights.size(),
                            Place::ejection);  // in no queue: on its way into an ejection buffer
  for (std::uint32_t i = state_.free_flight; i != none; i = state_.flights[i].next) places[i] = Place::unused;
  for (std::uint32_t queue = 0; queue < spec_.layout.first_ejection_buffer; ++queue) {
    const Place place = spec_.layout.is_injection(queue) ? Place::fifo : Place::router;
    for (std::uint32_t i = state_.queues[queue].head; i != none; i = state_.flights[i].next)
      places[i] = place;
  }
  std::vector<std::uint32_t> taken;
  for (std::uint32_t i = none + 1; i < state_.flights.size(); ++i) {
    if (places[i] == Place::unused || places[i] == Place::fifo) continue;
    taken.push_back(i);
    if (places[i] == Place::router) continue;
    state_.queues[outputs_[state_.flights[i].wanted_output].spec.first_buffer].room_bytes +=
        static_cast<std::int32_t>(state_.flights[i].wire_bytes);
  }
  std::sort(taken.begin(), taken.end(), [this](std::uint32_t one, std::uint32_t other) {
    return state_.numbers[one] < state_.numbers[other];
  });
  return taken;
}

// Keeps returning_bytes and free_at of a packet whose tail is still in the FIFO.
void PacketEngine::reset_injection(std::uint32_t queue_index) {
  Queue& queue = state_.queues[queue_index];
  credits_.settle(queue, Time::zero(), simulation_.now());
  if (queue.needed_bytes != packet::notified_bytes) return;
  if (queue.returning_bytes != 0) {
    queue.needed_bytes = 1;  // withdraws the announcement: the packet keeps that room
  } else {
    schedule(EventKind::link, queue_index, simulation_.now(), Step::injection_freed, {queue_index, 0, 0});
  }
}

void PacketEngine::reset_routers() {
  for (std::uint32_t i = 0; i < spec_.layout.first_ejection_buffer; ++i) {
    Queue& queue = state_.queues[i];
    queue.free_at = Time::zero();
    if (spec_.layout.is_injection(i)) continue;
    queue = {};
    queue.room_bytes = static_cast<std::int32_t>(spec_.buffer_bytes);
  }
  credits_.clear();
  for (std::uint32_t i = 0; i < outputs_.size(); ++i) {
    Output& output = outputs_[i];
    if (state_.free_at[i] > simulation_.now()) output.counters.busy -= state_.free_at[i] - simulation_.now();
    state_.free_at[i] = Time::zero();
    output.state.wake_at = Time::never();
    output.state.waiting_mask = 0;
    output.state.waiting = 0;
    output.state.last_granted = 0;
  }
  waiting_.clear();
}

// Checks that a card's count of free room equals the room that the packets in its FIFO leave.
void PacketEngine::check_injection_room() const {
  for (std::uint32_t i = spec_.layout.first_injection_queue; i < spec_.layout.first_ejection_buffer; ++i) {
    std::int64_t bytes = state_.queues[i].room_bytes;
    for (std::uint32_t flight = state_.queues[i].head; flight != none; flight = state_.flights[flight].next) {
      if (!state_.flights[flight].is_resent) bytes += state_.flights[flight].wire_bytes;
    }
    APENET_CHECK(bytes == spec_.injection_buffer_bytes && state_.queues[i].returning_bytes == 0,
                 "injection buffer %u accounts for %lld of %lld bytes",
                 i - spec_.layout.first_injection_queue, static_cast<long long>(bytes),
                 static_cast<long long>(spec_.injection_buffer_bytes));
  }
}

void PacketEngine::restart(const Routing* routing, InjectionGate* gate) {
  state_.control.gate = gate;
  use_routing(routing != nullptr ? *routing : *own_routing_);
  state_.control.is_halted = false;
  for (std::uint32_t queue = spec_.layout.first_injection_queue; queue < spec_.layout.first_ejection_buffer;
       ++queue) {
    const std::uint32_t head = state_.queues[queue].head;
    if (head != none) schedule_ready(queue, head, std::max(simulation_.now(), state_.flights[head].ready));
  }
}

std::uint64_t PacketEngine::messages_under_way() const {
  std::vector<bool> is_unused(state_.flights.size());
  for (std::uint32_t i = state_.free_flight; i != none; i = state_.flights[i].next) is_unused[i] = true;
  std::vector<std::pair<NodeId, std::uint64_t>> messages;
  for (std::uint32_t i = none + 1; i < state_.flights.size(); ++i) {
    if (!is_unused[i]) messages.emplace_back(state_.flights[i].source, state_.flights[i].message);
  }
  std::sort(messages.begin(), messages.end());
  return static_cast<std::uint64_t>(std::unique(messages.begin(), messages.end()) - messages.begin());
}

}  // namespace apenet
