// EventQueue: the pending events, popped in their total order.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/batch_sort.hpp"
#include "kernel/event.hpp"
#include "kernel/large_array.hpp"
#include "kernel/timing_wheel.hpp"

namespace apenet {

// Pops in the order of (time, PackedOrder), as a sorted set would; tests/kernel/reference_event_queue.hpp is
// that set, and the tests run both in lockstep.
//
// A heap of 10 k events misses the cache on every level of every pop. This queue relies on one invariant:
// time only grows, so no event is pushed before the last one popped. Events wait unsorted in a timing wheel;
// only the slots that are due next are sorted, a batch at a time, into near_. A slot of many events is spread
// over the level below first, unless few events came late to the last slot of its level: an event whose time
// lies in a batch that is already sorted is late, and waits in a heap. No bucket width is tuned, so no
// pattern of delays is pathological.
//
// When many events are pending, several batches are sorted ahead: the queue then knows some dozen events in
// advance, and lets their handlers prefetch what they will need.
//
// Few events need no wheel: while no more than few_limit are pending, all of them are in near_, each put into
// its place when it is pushed.
//
// Every event before near_end_ps_ is in near_ or late_, every other one in the wheel.
class EventQueue {
 public:
  EventQueue() = default;
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;
  // For std::swap: what has been moved from is only assigned to.
  EventQueue(EventQueue&&) = default;
  EventQueue& operator=(EventQueue&&) = default;

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

  // Requires a time not before that of the last event popped.
  void push(std::uint64_t time_ps, std::uint64_t order, EventHandler* handler, std::uint64_t argument_a,
            std::uint64_t argument_b) {
    ++size_;
    TimingWheel::Slot& slot = wheel_.slot_of(time_ps);
    // A tail call in a function of its own: the frequent path then saves no registers.
    if (time_ps < near_end_ps_ || slot.room_used() == 0) [[unlikely]] {
      push_apart(time_ps, order, handler, argument_a, argument_b);
      return;
    }
    // Field by field: copying an event built elsewhere would stall the processor's store buffer.
    Event& event = TimingWheel::append(slot, time_ps);
    event.time_ps = time_ps;
    event.order = order;
    event.handler = handler;
    event.argument_a = argument_a;
    event.argument_b = argument_b;
  }

  // Requires !empty().
  [[nodiscard]] std::uint64_t next_time_ps() const {
    if (near_cursor_ < near_count_) return std::min(near_[near_cursor_].time_ps, late_ps_);
    return late_.empty() ? wheel_next_time_ps() : late_ps_;
  }

  // Requires !empty(). The reference is valid until the next pop.
  const Event& pop() {
    if (near_cursor_ >= advance_at_) advance();
    --size_;
    const Event& event = near_[near_cursor_];
    if (late_ps_ <= event.time_ps && late_.front().before(event)) [[unlikely]]
      return pop_late();
    ++near_cursor_;
    last_popped_ps_ = event.time_ps;
    return event;
  }

  // The state on which pops depend. The arrangement of the events is not part of it.
  struct State {
    std::vector<Event> pending;  // in their order
    Numbering<std::uint64_t> last_popped_ps;
  };
  [[nodiscard]] State state() const;
  void restore(const State& state);

  // Call after each pop: announces the coming events to their handlers (EventHandler::prepare).
  void prepare_coming() {
    if (near_cursor_ + prepare_handler >= near_count_) return;
    const Event* const next = &near_[near_cursor_];
    __builtin_prefetch(next[prepare_handler].handler);
    next[prepare_far].handler->prepare(next[prepare_far], EventHandler::Ahead::far);
    next[prepare_close].handler->prepare(next[prepare_close], EventHandler::Ahead::close);
  }

 private:
  using Place = TimingWheel::Place;

  static constexpr std::size_t batch_target = 16;  // events up to which neighbouring slots are taken together
  static constexpr std::size_t batch_always = 32;  // larger slots are sorted whole only where that pays,
  static constexpr std::size_t batch_limit = 8192;   // and never beyond this size
  static constexpr std::size_t late_share = 8;       // it pays while at most one event in so many comes late
  static constexpr std::uint32_t spread_alike = 64;  // slots to spread after one with too many equal times
  static constexpr std::size_t late_limit = 64;      // late events that show that near_ spans too long a time
  static constexpr std::size_t near_kept = 256;      // popped events that near_ may hold
  static constexpr std::size_t few_limit = 40;       // pending events beyond which the wheel is used,
  static constexpr std::size_t few_again = 16;       // and up to which it no longer is
  static constexpr std::size_t near_room = 512;      // capacity of near_, at least: several times few_limit
  static constexpr std::size_t prepare_above = 1024;  // pending events; the state of fewer fits the cache
  // Distances in events. A shorter one leaves memory too little time; with a longer one lines are evicted
  // again.
  static constexpr std::size_t prepare_handler = 30;
  static constexpr std::size_t prepare_far = 20;
  static constexpr std::size_t prepare_close = 8;

  [[nodiscard]] std::uint64_t wheel_next_time_ps() const;
  [[nodiscard]] Place first_occupied() const;
  void push_apart(std::uint64_t time_ps, std::uint64_t order, EventHandler* handler, std::uint64_t argument_a,
                  std::uint64_t argument_b);
  void push_few(const Event& event);
  void gather_few();
  void empty_near();
  void push_late(const Event& event);
  Event take_late();
  const Event& pop_late();
  void advance();
  void refill();
  bool take_near(Place place);
  bool pays_whole(Place place);
  void drop_popped();
  Event* extend_near(std::size_t more);
  void narrow_near();

  std::size_t size_ = 0;
  std::size_t near_cursor_ = 0;
  std::size_t near_count_ = 0;
  static constexpr std::size_t never = ~std::size_t{0};
  std::size_t advance_at_ = never;  // the cursor from which near_ holds too few events ahead
  // Sorted from near_cursor_ to near_count_; never shrinks.
  LargeArray<Event> near_ = LargeArray<Event>(near_room);
  std::vector<Event> late_;  // a heap
  static constexpr std::uint64_t none_late_ps = ~std::uint64_t{0};
  std::uint64_t late_ps_ = none_late_ps;  // the earliest of them
  Event popped_late_;
  static constexpr std::uint64_t endless_ps = ~std::uint64_t{0};
  std::uint64_t near_end_ps_ = endless_ps;  // this while there are few events
  std::uint64_t last_popped_ps_ = 0;
  int near_level_ = 0;
  std::uint64_t handled_ = 0;  // events taken out of the wheel, or pushed late
  // The last slot of more than batch_always events of a level.
  struct LastLarge {
    std::uint64_t handled = 0;  // handled_ when it was reached
    std::uint64_t count = 0;
    std::uint32_t spread = 0;  // further slots to spread without a try
  };
  std::array<LastLarge, TimingWheel::level_count> last_large_;
  TimingWheel wheel_;
  BatchSort sort_;
};

}  // namespace apenet
