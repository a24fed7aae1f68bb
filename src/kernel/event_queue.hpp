// The event queue: what happens next, in one total order.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernel/time.hpp"

namespace apenet {

class EventHandler;
struct PendingEvent;

// What an event is about; the second key of the order. At one instant resources are freed before they are
// asked for, and the network moves before the hosts look at it.
enum class EventKind : std::uint8_t {
  credit = 0,
  link = 1,
  router = 2,
  nic = 3,
  host = 4,
  process = 5,
  control = 6
};

// (time, kind, source, the source's own counter): a total order that does not depend on insertion, on
// addresses or on hash order (after Shadow, src/main/core/work/event.rs).
struct EventOrder {
  Time time;
  EventKind kind = EventKind::control;
  std::uint32_t source = 0;   // number of the component that scheduled it, unique within its kind
  std::uint64_t counter = 0;  // how many events that component had scheduled before
};

// A pending call of handler->handle(argument_a, argument_b) at order.time.
struct Event {
  EventOrder order;
  EventHandler* handler = nullptr;
  std::uint64_t argument_a = 0;
  std::uint64_t argument_b = 0;
};

class EventHandler {
 public:
  virtual void handle_event(const Event& event) = 0;
  // The event is due within the next few: a component whose state does not fit the cache asks for it here
  // (__builtin_prefetch). First for what the event names, then, a few events later, for what that names in
  // turn. It changes nothing, and is not promised for every event.
  enum class Ahead : std::uint8_t { far, close };
  virtual void prepare(const PendingEvent& /*event*/, Ahead /*ahead*/) const {}

 protected:
  ~EventHandler() = default;
};

// Everything of the order but the time in one word, so that two events compare by two words: 3 bits of kind,
// 25 of source (33 M components of a kind), 36 of counter (68 G events of a component). Simulation::schedule
// checks the limits.
struct PackedOrder {
  static constexpr int source_bits = 25;
  static constexpr int counter_bits = 36;
  static constexpr std::uint64_t pack(EventKind kind, std::uint32_t source, std::uint64_t counter) {
    return static_cast<std::uint64_t>(kind) << (source_bits + counter_bits) |
           static_cast<std::uint64_t>(source) << counter_bits | counter;
  }
  static constexpr EventKind kind(std::uint64_t word) {
    return static_cast<EventKind>(word >> (source_bits + counter_bits));
  }
  static constexpr std::uint32_t source(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> counter_bits & ((std::uint64_t{1} << source_bits) - 1));
  }
  static constexpr std::uint64_t counter(std::uint64_t word) {
    return word & ((std::uint64_t{1} << counter_bits) - 1);
  }
};

// An event as the queue holds it.
struct PendingEvent {
  std::uint64_t time_ps = 0;
  std::uint64_t order = 0;  // PackedOrder
  EventHandler* handler = nullptr;
  std::uint64_t argument_a = 0;
  std::uint64_t argument_b = 0;

  [[nodiscard]] bool before(const PendingEvent& other) const {
    __extension__ using Wide = unsigned __int128;  // one comparison without a branch between the two words
    return (static_cast<Wide>(time_ps) << 64 | order) <
           (static_cast<Wide>(other.time_ps) << 64 | other.order);
  }
};

// The pending events, popped in the order of (time, PackedOrder).
//
// A heap of 10 k events and more misses the cache on every level of every pop: std::priority_queue takes 2 to
// 4 times as long as this queue on the same random delays (with 100 events it is the faster one). This queue
// uses that time only grows: a hierarchical timing wheel of 64 slots a level, one bit each in a word, so that
// a push appends to a slot and the next occupied slot is one count of trailing zeros. Only the slots due
// next, together about sort_limit events, are ever sorted (`near_`); a fuller slot is first spread over the
// level below. Nothing is tuned to a width of buckets, so no pattern of delays is pathological.
//
// Invariants: every event before near_end_ps_ is in near_ or late_, every other one in the wheel; an event in
// the wheel lies at the level of its highest digit (base 64) that differs from wheel_base_ps_; pushed times
// are never before the last popped one.
class EventQueue {
 public:
  EventQueue();
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

  void push(const PendingEvent& event) {
    ++size_;
    if (event.time_ps < near_end_ps_) [[unlikely]] {
      push_late(event);
    } else {
      push_wheel(event);
    }
  }

  // Requires !empty().
  [[nodiscard]] std::uint64_t next_time_ps() const {
    if (near_cursor_ < near_.size()) {
      const std::uint64_t time_ps = near_[near_cursor_].time_ps;
      return late_.empty() ? time_ps : std::min(time_ps, late_.front().time_ps);
    }
    return late_.empty() ? wheel_next_time_ps() : late_.front().time_ps;
  }

  // Tells the handlers of the next few sorted events that they are due.
  void prepare_next() {
    constexpr std::size_t far = 8;
    constexpr std::size_t close = 3;
    for (const std::size_t end = std::min(near_cursor_ + far, near_.size()); near_prepared_ < end;
         ++near_prepared_) {
      near_[near_prepared_].handler->prepare(near_[near_prepared_], EventHandler::Ahead::far);
    }
    if (near_cursor_ + close < near_.size()) {
      const PendingEvent& event = near_[near_cursor_ + close];
      event.handler->prepare(event, EventHandler::Ahead::close);
    }
  }

  // Requires !empty().
  PendingEvent pop() {
    --size_;
    if (late_.empty()) [[likely]] {
      if (near_cursor_ == near_.size()) refill();
    } else if (near_cursor_ == near_.size() || late_.front().before(near_[near_cursor_])) {
      return pop_late();
    }
    last_popped_ps_ = near_[near_cursor_].time_ps;
    return near_[near_cursor_++];
  }

 private:
  static constexpr int digit_bits = 6;
  static constexpr int slots_per_level = 1 << digit_bits;
  static constexpr int level_count = 11;  // 66 bits hold every time
  static constexpr std::uint32_t chunk_capacity = 16;
  static constexpr std::uint32_t sort_limit = 16;  // slots of more events are spread before they are sorted
  static constexpr std::size_t late_limit = 64;    // more late events than this: near_ was made too wide

  // Slots share a pool of chunks: memory follows the pending events, and the chunks in use stay in the cache.
  struct Chunk {
    std::array<PendingEvent, chunk_capacity> events;
    Chunk* next = nullptr;
  };
  struct Slot {
    Chunk* chunks = nullptr;  // the first is partly filled: count % chunk_capacity, the others are full
    std::uint64_t earliest_ps = 0;
    std::uint64_t count = 0;
  };

  void push_wheel(const PendingEvent& event) {
    const std::uint64_t difference = event.time_ps ^ wheel_base_ps_;
    const int level = difference == 0 ? 0 : (std::bit_width(difference) - 1) / digit_bits;
    const auto digit = (event.time_ps >> (level * digit_bits)) % slots_per_level;
    Slot& slot = slots_[static_cast<std::size_t>(level) * slots_per_level + digit];
    if (slot.count == 0) {
      occupied_[static_cast<std::size_t>(level)] |= std::uint64_t{1} << digit;
      slot.earliest_ps = event.time_ps;
    }
    slot.earliest_ps = std::min(slot.earliest_ps, event.time_ps);
    const auto position = slot.count++ % chunk_capacity;
    if (position == 0) add_chunk(slot);
    slot.chunks->events[position] = event;
  }

  [[nodiscard]] int lowest_level() const;
  [[nodiscard]] std::uint64_t wheel_next_time_ps() const;
  void add_chunk(Slot& slot);
  void push_late(const PendingEvent& event);
  PendingEvent pop_late();
  void refill();
  void spread(int level, int digit);
  void take_near(int level, int digit);
  void sort_near();
  template <typename Take>
  void empty_slot(int level, int digit, Take take);
  void narrow_near();

  std::size_t size_ = 0;
  std::size_t near_cursor_ = 0;
  std::size_t near_prepared_ = 0;   // near_ up to here has been announced to its handlers
  std::vector<PendingEvent> near_;  // sorted; popped up to near_cursor_
  std::vector<PendingEvent> late_;  // heap of what was pushed before near_end_ps_ after near_ was sorted
  std::uint64_t near_end_ps_ = 0;
  std::uint64_t wheel_base_ps_ = 0;
  std::uint64_t last_popped_ps_ = 0;
  int near_level_ = 0;
  std::array<std::uint64_t, level_count> occupied_{};  // bit per slot
  std::vector<Slot> slots_;
  std::vector<PendingEvent> unsorted_;
  std::vector<std::unique_ptr<Chunk[]>> chunk_blocks_;
  Chunk* free_chunks_ = nullptr;
};

}  // namespace apenet
