// CreditReturns: the credits of all queues that are on their way back to the sender.
#pragma once

#include <cstdint>
#include "kernel/large_array.hpp"
#include "kernel/time.hpp"
#include "network/packet/records.hpp"

namespace apenet::packet {

// The last credit of a queue is in the queue itself; earlier ones form a ring of records here, in the order
// of their return. Credits are settled, that is added to the room, only when somebody finds too little room:
// without contention a hop touches no record.
class CreditReturns {
 public:
  // Adds to the room what has come back by `now`.
  void settle(Queue& queue, Time credit_latency, Time now) {
    if (queue.earlier_returns != none) settle_earlier(queue, now);
    const bool is_back = queue.earlier_returns == none && queue.free_at + credit_latency <= now;
    const std::uint32_t back_bytes = is_back ? queue.returning_bytes : 0;
    queue.room_bytes += static_cast<std::int32_t>(back_bytes);
    queue.returning_bytes -= back_bytes;
  }
  // The same without the last credit.
  void settle_earlier(Queue& queue, Time now);

  // Records the last credit of the queue, which is back at `time`, before another takes its place.
  void add(Queue& queue, Time time, Time now);

  // When credits on their way will have made the room; never() when they do not suffice.
  [[nodiscard]] Time room_time(const Queue& queue, std::uint32_t bytes, Time credit_latency) const;

  void prefetch(const Queue& queue) const {
    __builtin_prefetch(state_.records.data() + queue.earlier_returns);
  }

  // Forgets all of them. Requires that no queue refers to one.
  void clear() {
    state_.records.resize(1);
    state_.free = none;
  }

  struct Record {
    Time time;
    std::uint32_t bytes = 0;
    std::uint32_t next = none;  // the last one's next is the first
  };
  struct State {
    LargeArray<Record> records{1};
    std::uint32_t free = none;
  };

 private:
  State state_;
};

}  // namespace apenet::packet
