// PacketEngine: room in buffers, credits on their way back, and who waits for them.
#include <utility>

#include "kernel/check.hpp"
#include "network/packet/engine.hpp"

namespace apenet {

std::int64_t PacketEngine::injection_room(NodeId node, std::uint16_t channel) const {
  APENET_CHECK(node < clients_.size() && channel < card_channels_, "node %u of %zu, channel %u of %u", node,
               clients_.size(), channel, card_channels_);
  const Queue& queue = queues_[first_injection_queue_ + node * card_channels_ + channel];
  const bool is_back = queue.free_at <= simulation_.now();  // and with it all before it
  return queue.room_bytes + (is_back ? std::int64_t{queue.returning_bytes} : 0);
}

void PacketEngine::await_injection_room(NodeId node, std::uint16_t channel) {
  const std::uint32_t queue_index = first_injection_queue_ + node * card_channels_ + channel;
  Queue& queue = queues_[queue_index];
  if (queue.needed_bytes != 0) return;  // has asked already
  queue.needed_bytes = 1;
  if (queue.free_at > simulation_.now() && queue.returning_bytes != 0) tell_room(queue_index);
}

void PacketEngine::tell_injection_freed(std::uint32_t queue_index) {
  queues_[queue_index].needed_bytes = 0;
  const std::uint32_t number = queue_index - first_injection_queue_;
  NetworkClient* const client = clients_[number / card_channels_];
  APENET_CHECK(client != nullptr, "node %u injected without a client", number / card_channels_);
  client->injection_freed(static_cast<std::uint16_t>(number % card_channels_));
}

// Nobody who waits has room. Wakes the output when the first of them will have; where the space is still
// occupied, leave_queue does so when the packet in it leaves.
void PacketEngine::await_room(std::uint32_t output_index) {
  const Output& output = outputs_[output_index];
  if (stages_[output.stage].kind == StageKind::ejection) return;  // consumed() arbitrates
  std::uint64_t seen = 0;
  visit_waiting(output_index, [&](std::uint32_t queue_index) {
    const Flight& flight = flights_[queues_[queue_index].head];
    const std::uint64_t bit = std::uint64_t{1} << flight.wanted_vc;
    if ((seen & bit) != 0) return false;
    seen |= bit;
    Queue& buffer = queues_[output.first_buffer + flight.wanted_vc];
    const Time time = room_time(buffer, flight.wire_bytes);
    if (time == Time::never()) {
      buffer.needed_bytes = flight.wire_bytes;
    } else {
      wake(output_index, time, queue_index);
    }
    return false;
  });
}

// When credits already on their way will make the room; never() when those do not suffice.
Time PacketEngine::room_time(const Queue& queue, std::uint32_t bytes) const {
  std::int64_t room_bytes = queue.room_bytes;
  if (queue.earlier_returns != none) {
    const std::uint32_t last = queue.earlier_returns;
    std::uint32_t index = last;
    do {
      index = returns_[index].next;
      room_bytes += returns_[index].bytes;
      if (room_bytes >= bytes) return returns_[index].time;
    } while (index != last);
  }
  room_bytes += queue.returning_bytes;
  return queue.returning_bytes != 0 && room_bytes >= bytes ? queue.free_at + credit_latency_ : Time::never();
}

// Counts those that came back before the last one.
void PacketEngine::settle_earlier(Queue& queue) {
  const Time now = simulation_.now();
  while (queue.earlier_returns != none) {
    CreditReturn& last = returns_[queue.earlier_returns];
    const std::uint32_t index = last.next;
    CreditReturn& first = returns_[index];
    if (first.time > now) return;
    queue.room_bytes += static_cast<std::int32_t>(first.bytes);
    if (index == queue.earlier_returns) {
      queue.earlier_returns = none;
    } else {
      last.next = first.next;
    }
    first.next = free_return_;
    free_return_ = index;
  }
}

// Another packet follows before the credit of the last one is back. Mostly that of the one before is, and its
// record serves again.
void PacketEngine::add_return(Queue& queue, Time time) {
  const std::uint32_t last = queue.earlier_returns;
  if (last != none) {
    CreditReturn& credit = returns_[last];
    if (credit.next == last && credit.time <= simulation_.now()) {
      queue.room_bytes += static_cast<std::int32_t>(credit.bytes);
      credit.time = time;
      credit.bytes = queue.returning_bytes;
      return;
    }
    settle_earlier(queue);
  }
  std::uint32_t index = free_return_;
  if (index == none) {
    index = static_cast<std::uint32_t>(returns_.size());
    returns_.emplace_back();
  } else {
    free_return_ = returns_[index].next;
  }
  returns_[index] = {time, queue.returning_bytes, index};
  if (queue.earlier_returns != none) std::swap(returns_[index].next, returns_[queue.earlier_returns].next);
  queue.earlier_returns = index;
}

// Somebody waits for room in this queue, and a packet has just set out.
void PacketEngine::tell_room(std::uint32_t queue_index) {
  Queue& queue = queues_[queue_index];
  if (is_injection(queue_index)) {
    if (queue.needed_bytes == told_bytes) return;
    queue.needed_bytes = told_bytes;
    schedule(EventKind::link, queue_index, queue.free_at, Step::injection_freed, {queue_index, 0, 0});
    return;
  }
  settle_earlier(queue);
  const Time time = room_time(queue, queue.needed_bytes);
  if (time == Time::never()) return;
  queue.needed_bytes = 0;
  const std::uint32_t upstream = upstream_[queue_index / virtual_channels_];
  if (outputs_[upstream].waiting == 0) return;
  wake(upstream, std::max(time, free_at_[upstream]), next_waiting(upstream));
}

}  // namespace apenet
