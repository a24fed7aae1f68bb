// PacketEngine: who waits for room in buffers and injection FIFOs.
#include <algorithm>
#include <array>
#include <bit>

#include "kernel/check.hpp"
#include "network/packet/engine.hpp"

namespace apenet {

std::int64_t PacketEngine::injection_room(NodeId node, std::uint16_t channel) const {
  APENET_CHECK(node < clients_.size() && channel < spec_.layout.fifos, "node %u of %zu, channel %u of %u",
               node, clients_.size(), channel, spec_.layout.fifos);
  const Queue& queue = state_.queues[spec_.layout.injection_queue(node, channel)];
  const bool is_back = queue.free_at <= simulation_.now();  // and with it all before it
  return queue.room_bytes + (is_back ? std::int64_t{queue.returning_bytes} : 0);
}

void PacketEngine::await_injection_room(NodeId node, std::uint16_t channel) {
  const std::uint32_t queue_index = spec_.layout.injection_queue(node, channel);
  Queue& queue = state_.queues[queue_index];
  if (queue.needed_bytes != 0) return;  // has asked already
  queue.needed_bytes = 1;
  if (queue.free_at > simulation_.now() && queue.returning_bytes != 0) tell_room(queue_index);
}

void PacketEngine::tell_injection_freed(std::uint32_t queue_index) {
  state_.queues[queue_index].needed_bytes = 0;
  const std::uint32_t number = queue_index - spec_.layout.first_injection_queue;
  NetworkClient* const client = clients_[number / spec_.layout.fifos];
  APENET_CHECK(client != nullptr, "node %u injected without a client", number / spec_.layout.fifos);
  client->injection_freed(static_cast<std::uint16_t>(number % spec_.layout.fifos));
}

// The virtual channels behind the output that the packet may take, a bit for each.
std::uint64_t PacketEngine::lanes_for(const Output& output, const Flight& flight) const {
  if (!spec_.takes_any_lane || output.spec.vc_mask == 0) return std::uint64_t{1} << flight.wanted_vc;
  if (stages_[output.spec.stage].spec.kind == StageKind::injection)
    return ~std::uint64_t{0} >> (ChannelClasses::max_channels - spec_.layout.virtual_channels);
  return memo_.classes.mask(memo_.classes.class_of(flight.wanted_vc));
}

// The room that the head of the queue needs in a virtual channel behind the output. In a ring with a bubble:
// a slot if it goes on along it, two if it enters it (Routing::bubble_class).
std::uint32_t PacketEngine::needed_bytes(const Output& output, std::uint32_t queue_index,
                                         const Flight& flight, std::uint32_t vc) const {
  if (!is_in_ring(output, vc)) return flight.wire_bytes;
  const std::uint32_t channels = spec_.layout.virtual_channels;
  const auto output_port = static_cast<std::uint32_t>(&output - outputs_.data()) % spec_.layout.ports;
  const bool goes_on = !spec_.layout.is_injection(queue_index) && queue_index % channels == vc &&
                       queue_index / channels % spec_.layout.ports == (output_port ^ 1U);
  return (goes_on ? 1 : 2) * spec_.max_packet_wire_bytes;
}

// What becomes free when the packet leaves the queue.
std::uint32_t PacketEngine::returned_bytes(std::uint32_t queue_index, const Flight& flight) const {
  if (flight.is_resent) return 0;
  const std::uint32_t channels = spec_.layout.virtual_channels;
  const bool is_in_slot = !spec_.layout.is_injection(queue_index) &&
                          queue_index / channels % spec_.layout.ports < spec_.layout.attachment_port &&
                          (memo_.ring_channels >> queue_index % channels & 1U) != 0;
  return is_in_slot ? spec_.max_packet_wire_bytes : flight.wire_bytes;
}

// Chooses the lane with most room. Among equals it goes on from the lanes of the packets before, so that
// packets share the virtual channels evenly.
bool PacketEngine::finds_lane(const Output& output, std::uint32_t queue_index, Flight& flight) {
  const std::uint64_t lanes = lanes_for(output, flight);
  if (output.spec.vc_mask == 0) {
    return has_room(output, flight.wanted_vc, needed_bytes(output, queue_index, flight, flight.wanted_vc));
  }
  const auto first = static_cast<std::uint32_t>(std::countr_zero(lanes));
  const auto count = static_cast<std::uint32_t>(std::popcount(lanes));
  std::int64_t most_bytes = -1;
  bool is_found = false;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto vc = static_cast<std::uint32_t>(first + (output.counters.packets + i) % count);
    const std::int64_t needed = needed_bytes(output, queue_index, flight, vc);
    Queue& buffer = state_.queues[output.spec.first_buffer + vc];
    credits_.settle(buffer, credit_latency(buffer), simulation_.now());
    if (buffer.room_bytes < needed || buffer.room_bytes <= most_bytes) continue;
    most_bytes = buffer.room_bytes;
    flight.wanted_vc = static_cast<std::uint8_t>(vc);
    is_found = true;
  }
  return is_found;
}

// Call when no waiting queue has room. Schedules a wake for the first credit that makes enough room; where no
// credit is on its way, leave_queue wakes the output when a packet leaves the full buffer.
void PacketEngine::await_room(std::uint32_t output_index) {
  const Output& output = outputs_[output_index];
  if (stages_[output.spec.stage].spec.kind == StageKind::ejection) return;  // consumed() arbitrates
  if (memo_.ring_channels != 0) [[unlikely]]
    return await_room_of_each(output_index);
  std::uint64_t seen = 0;
  visit_in_turn(output_index, [&](std::uint32_t queue_index) {
    const Flight& flight = state_.flights[state_.queues[queue_index].head];
    const std::uint64_t lanes = lanes_for(output, flight) & ~seen;
    seen |= lanes;
    for (std::uint64_t left = lanes; left != 0; left &= left - 1) {
      Queue& buffer =
          state_.queues[output.spec.first_buffer + static_cast<std::uint32_t>(std::countr_zero(left))];
      const Time time = credits_.room_time(buffer, flight.wire_bytes, credit_latency(buffer));
      if (time == Time::never()) {
        buffer.needed_bytes = flight.wire_bytes;
      } else {
        wake(output_index, time, queue_index);
      }
    }
    return false;
  });
}

// The same where packets need different room in one virtual channel: what the first of them needs, or in a
// ring the one that needs least.
void PacketEngine::await_room_of_each(std::uint32_t output_index) {
  const Output& output = outputs_[output_index];
  std::array<std::uint32_t, ChannelClasses::max_channels> needed{};
  std::uint32_t first_queue = 0;
  visit_in_turn(output_index, [&](std::uint32_t queue_index) {
    const Flight& flight = state_.flights[state_.queues[queue_index].head];
    for (std::uint64_t left = lanes_for(output, flight); left != 0; left &= left - 1) {
      const auto vc = static_cast<std::uint32_t>(std::countr_zero(left));
      const std::uint32_t bytes = needed_bytes(output, queue_index, flight, vc);
      if (needed[vc] == 0 || (is_in_ring(output, vc) && bytes < needed[vc])) needed[vc] = bytes;
    }
    first_queue = queue_index;
    return false;
  });
  for (std::uint32_t vc = 0; vc < needed.size(); ++vc) {
    if (needed[vc] == 0) continue;
    Queue& buffer = state_.queues[output.buffer(vc)];
    const Time time = credits_.room_time(buffer, needed[vc], credit_latency(buffer));
    if (time == Time::never()) {
      buffer.needed_bytes = needed[vc];
    } else {
      wake(output_index, time, first_queue);
    }
  }
}

// Call when a packet has just left a queue for whose room somebody waits.
void PacketEngine::tell_room(std::uint32_t queue_index) {
  Queue& queue = state_.queues[queue_index];
  if (spec_.layout.is_injection(queue_index)) {
    if (queue.needed_bytes == packet::notified_bytes) return;
    queue.needed_bytes = packet::notified_bytes;
    schedule(EventKind::link, queue_index, queue.free_at, Step::injection_freed, {queue_index, 0, 0});
    return;
  }
  credits_.settle_earlier(queue, simulation_.now());
  const Time time = credits_.room_time(queue, queue.needed_bytes, credit_latency(queue));
  if (time == Time::never()) return;
  queue.needed_bytes = 0;
  const std::uint32_t upstream = spec_.upstream[queue_index / spec_.layout.virtual_channels];
  if (outputs_[upstream].state.waiting == 0) return;
  // The room may be older than now: behind a wormhole's credit_lead() its flits leave by a faster port.
  const Time when = std::max({time, state_.free_at[upstream], simulation_.now()});
  wake(upstream, when, waiting_.next(outputs_[upstream], upstream));
}

}  // namespace apenet
