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
  for (const std::uint32_t output : links_) {
    use.corrupted_packets += errors_->link(output).corrupted;
    use.retransmitted_bytes += errors_->link(output).retransmitted_bytes;
  }
  return use;
}

// Go-back-N: the receiver drops a corrupted packet and all that follow until the packet comes again. The link
// passes no other packet from the first transmission to the good one. Returns when the good header leaves.
Time PacketEngine::pass_errors(std::uint32_t output_index, const Flight& flight) {
  const Stage& stage = stages_[outputs_[output_index].stage];
  const Time duration = stage.serialisation.duration(flight.wire_bytes);
  const Time turnaround = (stage.latency + router_latency_) * 2;
  Time header_out = simulation_.now();
  for (std::uint32_t failures = errors_->draw_failures(output_index, stage.bit_error_rate, flight.wire_bytes);
       failures > 0; --failures) {
    header_out = std::max(header_out + duration, flight.tail_in + stage.tail_latency) + turnaround;
  }
  return header_out;
}

std::uint64_t PacketEngine::halt() {
  APENET_CHECK(keeps_numbers_, "halted without allow_halts()");
  run_ += std::uint64_t{1} << run_shift;
  APENET_CHECK(run_ != 0, "halted %llu times", 1ULL << (64U - run_shift));
  is_halted_ = true;
  const std::vector<std::uint32_t> taken = take_back();
  for (std::uint32_t queue = layout_.first_injection_queue; queue < layout_.first_ejection_buffer; ++queue)
    reset_injection(queue);
  // Youngest first, each to the front of its queue, so that the oldest becomes the head.
  for (auto flight_index = taken.rbegin(); flight_index != taken.rend(); ++flight_index) {
    Flight& flight = flights_[*flight_index];
    const std::uint32_t queue_index = layout_.injection_queue(flight.source, flight.channel);
    Queue& queue = queues_[queue_index];
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
  std::vector<Place> places(flights_.size(),
                            Place::ejection);  // in no queue: on its way into an ejection buffer
  for (std::uint32_t i = free_flight_; i != none; i = flights_[i].next) places[i] = Place::unused;
  for (std::uint32_t queue = 0; queue < layout_.first_ejection_buffer; ++queue) {
    const Place place = layout_.is_injection(queue) ? Place::fifo : Place::router;
    for (std::uint32_t i = queues_[queue].head; i != none; i = flights_[i].next) places[i] = place;
  }
  std::vector<std::uint32_t> taken;
  for (std::uint32_t i = none + 1; i < flights_.size(); ++i) {
    if (places[i] == Place::unused || places[i] == Place::fifo) continue;
    taken.push_back(i);
    if (places[i] == Place::router) continue;
    queues_[layout_.first_ejection_buffer + flights_[i].destination].room_bytes +=
        static_cast<std::int32_t>(flights_[i].wire_bytes);
  }
  std::sort(taken.begin(), taken.end(),
            [this](std::uint32_t one, std::uint32_t other) { return numbers_[one] < numbers_[other]; });
  return taken;
}

// Keeps returning_bytes and free_at of a packet whose tail is still in the FIFO.
void PacketEngine::reset_injection(std::uint32_t queue_index) {
  Queue& queue = queues_[queue_index];
  credits_.settle(queue, Time::zero(), simulation_.now());
  if (queue.needed_bytes != packet::told_bytes) return;
  if (queue.returning_bytes != 0) {
    queue.needed_bytes = 1;  // withdraws the announcement: the packet keeps that room
  } else {
    schedule(EventKind::link, queue_index, simulation_.now(), Step::injection_freed, {queue_index, 0, 0});
  }
}

void PacketEngine::reset_routers() {
  for (std::uint32_t i = 0; i < layout_.first_ejection_buffer; ++i) {
    Queue& queue = queues_[i];
    queue.free_at = Time::zero();
    if (layout_.is_injection(i)) continue;
    queue = {};
    queue.room_bytes = static_cast<std::int32_t>(buffer_bytes_);
  }
  credits_.clear();
  for (std::uint32_t i = 0; i < outputs_.size(); ++i) {
    Output& output = outputs_[i];
    if (free_at_[i] > simulation_.now()) output.busy -= free_at_[i] - simulation_.now();
    free_at_[i] = Time::zero();
    output.wake_at = Time::never();
    output.waiting_mask = 0;
    output.waiting = 0;
    output.last_granted = 0;
  }
  waiting_.clear();
}

// Checks that a card's count of free room equals the room that the packets in its FIFO leave.
void PacketEngine::check_injection_room() const {
  for (std::uint32_t i = layout_.first_injection_queue; i < layout_.first_ejection_buffer; ++i) {
    std::int64_t bytes = queues_[i].room_bytes;
    for (std::uint32_t flight = queues_[i].head; flight != none; flight = flights_[flight].next) {
      if (!flights_[flight].is_resent) bytes += flights_[flight].wire_bytes;
    }
    APENET_CHECK(bytes == injection_buffer_bytes_ && queues_[i].returning_bytes == 0,
                 "injection buffer %u accounts for %lld of %lld bytes", i - layout_.first_injection_queue,
                 static_cast<long long>(bytes), static_cast<long long>(injection_buffer_bytes_));
  }
}

void PacketEngine::restart(const Routing* routing, InjectionGate* gate) {
  gate_ = gate;
  use_routing(routing != nullptr ? *routing : *own_routing_);
  is_halted_ = false;
  for (std::uint32_t queue = layout_.first_injection_queue; queue < layout_.first_ejection_buffer; ++queue) {
    const std::uint32_t head = queues_[queue].head;
    if (head != none) schedule_ready(queue, head, std::max(simulation_.now(), flights_[head].ready));
  }
}

std::uint64_t PacketEngine::messages_under_way() const {
  std::vector<bool> is_unused(flights_.size());
  for (std::uint32_t i = free_flight_; i != none; i = flights_[i].next) is_unused[i] = true;
  std::vector<std::pair<NodeId, std::uint64_t>> messages;
  for (std::uint32_t i = none + 1; i < flights_.size(); ++i) {
    if (!is_unused[i]) messages.emplace_back(flights_[i].source, flights_[i].message);
  }
  std::sort(messages.begin(), messages.end());
  return static_cast<std::uint64_t>(std::unique(messages.begin(), messages.end()) - messages.begin());
}

}  // namespace apenet
