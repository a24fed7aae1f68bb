#include "network/packet/credit_returns.hpp"

#include <algorithm>
#include <utility>

namespace apenet::packet {

void CreditReturns::settle_earlier(Queue& queue, Time now) {
  while (queue.earlier_returns != none) {
    Record& last = state_.records[queue.earlier_returns];
    const std::uint32_t index = last.next;
    Record& first = state_.records[index];
    if (first.time > now) return;
    queue.room_bytes += static_cast<std::int32_t>(first.bytes);
    if (index == queue.earlier_returns) {
      queue.earlier_returns = none;
    } else {
      last.next = first.next;
    }
    first.next = state_.free;
    state_.free = index;
  }
}

// Usually the credit recorded before has come back by now, and its record is used again.
void CreditReturns::add(Queue& queue, Time time, Time now) {
  const std::uint32_t last = queue.earlier_returns;
  if (last != none) {
    Record& credit = state_.records[last];
    if (credit.next == last && credit.time <= now) {
      queue.room_bytes += static_cast<std::int32_t>(credit.bytes);
      credit.time = time;
      credit.bytes = queue.returning_bytes;
      return;
    }
    settle_earlier(queue, now);
  }
  std::uint32_t index = state_.free;
  if (index == none) {
    index = static_cast<std::uint32_t>(state_.records.size());
    state_.records.emplace_back();
  } else {
    state_.free = state_.records[index].next;
  }
  state_.records[index] = {time, queue.returning_bytes, index};
  if (queue.earlier_returns != none)
    std::swap(state_.records[index].next, state_.records[queue.earlier_returns].next);
  queue.earlier_returns = index;
}

// A credit is not used before those that set out before it, even if it would be back earlier: in a wormhole,
// Wormhole::credit_lead() is larger for larger packets.
Time CreditReturns::room_time(const Queue& queue, std::uint32_t bytes, Time credit_latency) const {
  std::int64_t room_bytes = queue.room_bytes;
  Time back_at = Time::zero();
  if (queue.earlier_returns != none) {
    const std::uint32_t last = queue.earlier_returns;
    std::uint32_t index = last;
    do {
      index = state_.records[index].next;
      room_bytes += state_.records[index].bytes;
      back_at = std::max(back_at, state_.records[index].time);
      if (room_bytes >= bytes) return back_at;
    } while (index != last);
  }
  room_bytes += queue.returning_bytes;
  if (queue.returning_bytes == 0 || room_bytes < bytes) return Time::never();
  return std::max(back_at, queue.free_at + credit_latency);
}

}  // namespace apenet::packet
