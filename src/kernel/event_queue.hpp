// The event queue: what happens next, in one total order.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/large_array.hpp"
#include "kernel/time.hpp"

namespace apenet {

class EventHandler;

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

// Everything of the order but the time in one word, so that two events compare by two words: 3 bits of kind,
// 25 of source (33 M components of a kind), 36 of counter (68 G events of a component). Simulation::schedule
// checks the limits.
struct PackedOrder {
  static constexpr int kind_bits = 3;
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

// A pending call of handler->handle_event(event). Events are totally ordered by (time, kind, source, the
// source's own counter): an order that does not depend on insertion, on addresses or on hash order (as in
// the network simulator Shadow).
struct Event {
  std::uint64_t time_ps = 0;
  std::uint64_t order = 0;  // PackedOrder
  EventHandler* handler = nullptr;
  std::uint64_t argument_a = 0;
  std::uint64_t argument_b = 0;

  [[nodiscard]] Time time() const { return Time::from_ps(static_cast<std::int64_t>(time_ps)); }
  [[nodiscard]] EventKind kind() const { return PackedOrder::kind(order); }
  [[nodiscard]] std::uint32_t source() const { return PackedOrder::source(order); }
  [[nodiscard]] std::uint64_t counter() const { return PackedOrder::counter(order); }

  [[nodiscard]] bool before(const Event& other) const {
    __extension__ using Wide = unsigned __int128;  // one comparison without a branch between the two words
    return (static_cast<Wide>(time_ps) << 64 | order) <
           (static_cast<Wide>(other.time_ps) << 64 | other.order);
  }
};

class EventHandler {
 public:
  virtual void handle_event(const Event& event) = 0;
  // The event is due within the next few dozen: a component whose state does not fit the cache asks for it
  // here (__builtin_prefetch). First for what the event names, then, a few events before its turn, for what
  // that names in turn. It changes nothing, and is not promised for every event.
  enum class Ahead : std::uint8_t { far, close };
  virtual void prepare(const Event& event, Ahead ahead) const;

 protected:
  ~EventHandler() = default;
};

// The pending events, popped in the order of (time, PackedOrder).
//
// A heap of 10 k events and more misses the cache on every level of every pop. This queue uses that time only
// grows: a hierarchical timing wheel of 256 slots a level, one bit each, so that a push appends to a slot and
// the next occupied slot is a count of trailing zeros. Only the slots due next are ever sorted, each for
// itself: small ones, together about batch_target events, or one of up to batch_limit, by as many digits of
// its time as it has events. That serves as long as few events are pushed into the time that a slot spans
// after it was sorted: those are kept in a heap. Where more are, or where times coincide, a slot is first
// spread over the level below, or given to it whole where all its events go into one slot there. Nothing is
// tuned to a width of buckets, so no pattern of delays is pathological.
//
// When many events are pending, batches are sorted before their turn (near_ holds several): so the queue
// knows some dozen events ahead which come, and tells their handlers, who fetch into the cache what they will
// need.
//
// Invariants: every event before near_end_ps_ is in near_ or late_, every other one in the wheel; an event in
// the wheel lies at the level of its highest digit (base 256) that differs from wheel_base_ps_; a slot keeps
// the order of insertion; pushed times are never before the last popped one.
class EventQueue {
 public:
  EventQueue();
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

  void push(std::uint64_t time_ps, std::uint64_t order, EventHandler* handler, std::uint64_t argument_a,
            std::uint64_t argument_b) {
    ++size_;
    Slot& slot = slots_[slot_index(time_ps)];
    const auto position = static_cast<std::size_t>(slot.count % chunk_capacity);
    // Apart and last, so that a caller who has nothing else to call saves no registers.
    if (time_ps < near_end_ps_ || position == 0) [[unlikely]] {
      push_apart(time_ps, order, handler, argument_a, argument_b);
      return;
    }
    ++slot.count;
    slot.earliest_ps = std::min(slot.earliest_ps, time_ps);
    slot.latest_ps = std::max(slot.latest_ps, time_ps);
    // Field by field: an event built elsewhere and copied stalls the processor's store buffer.
    Event& event = slot.last->events[position];
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

  // Requires !empty(). The event stays where it is until the next pop.
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

  // After each pop: tells the handlers of the events that come. Every event passes each of these places,
  // unless it was pushed later than that.
  void prepare_coming() {
    if (near_cursor_ + prepare_handler >= near_count_) return;
    const Event* const next = &near_[near_cursor_];
    __builtin_prefetch(next[prepare_handler].handler);
    next[prepare_far].handler->prepare(next[prepare_far], EventHandler::Ahead::far);
    next[prepare_close].handler->prepare(next[prepare_close], EventHandler::Ahead::close);
  }

 private:
  static constexpr unsigned digit_bits = 8;
  static constexpr int slots_per_level = 1 << digit_bits;
  static constexpr int words_per_level = slots_per_level / 64;
  static constexpr int level_count = 8;
  static constexpr std::uint32_t chunk_capacity = 16;
  static constexpr std::size_t batch_target = 16;    // neighbouring slots are taken together up to here
  static constexpr std::size_t batch_always = 32;    // slots of more are sorted whole only where that pays,
  static constexpr std::size_t batch_limit = 8192;   // and of more than this never
  static constexpr std::size_t late_share = 8;       // it pays while at most one of so many events comes late
  static constexpr std::uint32_t spread_alike = 64;  // slots, once one had too many events alike
  static constexpr std::size_t late_limit = 64;      // more late events than this: near_ was made too wide
  static constexpr std::size_t near_kept = 256;      // popped events that near_ may hold
  static constexpr std::size_t prepare_above = 1024;  // pending events: with fewer, the state fits the cache
  // Events ahead. Nearer, and memory is too late; farther, and other events' state takes its place again.
  static constexpr std::size_t prepare_handler = 30;  // the handler itself is fetched
  static constexpr std::size_t prepare_far = 20;
  static constexpr std::size_t prepare_close = 8;

  // Slots share a pool of chunks: memory follows the pending events, and the chunks in use stay in the cache.
  struct Chunk {
    std::array<Event, chunk_capacity> events;
    Chunk* next = nullptr;
  };
  struct Slot {
    Chunk* first = nullptr;
    Chunk* last = nullptr;  // partly filled: count % chunk_capacity; the others are full
    std::uint64_t earliest_ps = 0;
    std::uint64_t latest_ps = 0;
    std::uint64_t count = 0;
  };
  struct Place {
    int level = 0;
    int digit = 0;
  };
  [[nodiscard]] static constexpr std::size_t slot_index(Place place) {
    return static_cast<std::size_t>(place.level) * slots_per_level + static_cast<std::size_t>(place.digit);
  }
  [[nodiscard]] static constexpr std::size_t word_index(int level, int word) {
    return static_cast<std::size_t>(level) * words_per_level + static_cast<std::size_t>(word);
  }
  // A level's number times digit_bits is the shift of its digit, and so no more than the position of the
  // highest bit that differs with its lowest bits cleared.
  [[nodiscard]] std::size_t slot_index(std::uint64_t time_ps) const {
    static_assert(std::has_single_bit(digit_bits));
    const auto highest = static_cast<unsigned>(std::bit_width((time_ps ^ wheel_base_ps_) | 1U) - 1);
    return slot_index(highest & ~(digit_bits - 1), time_ps);
  }
  [[nodiscard]] static std::size_t slot_index(unsigned shift, std::uint64_t time_ps) {
    return std::size_t{shift} * (slots_per_level / digit_bits) + (time_ps >> shift) % slots_per_level;
  }
  // Room for one more event.
  Event& place(std::size_t index, std::uint64_t time_ps) {
    Slot& slot = slots_[index];
    const auto position = static_cast<std::size_t>(slot.count++ % chunk_capacity);
    if (position == 0) [[unlikely]] {
      if (slot.count == 1) {
        occupied_[index / 64] |= std::uint64_t{1} << index % 64;
        slot.earliest_ps = time_ps;
        slot.latest_ps = time_ps;
      }
      add_chunk(slot);
    }
    slot.earliest_ps = std::min(slot.earliest_ps, time_ps);
    slot.latest_ps = std::max(slot.latest_ps, time_ps);
    return slot.last->events[position];
  }

  [[nodiscard]] const Slot& slot_at(Place place) const { return slots_[slot_index(place)]; }
  [[nodiscard]] Place first_place() const;
  [[nodiscard]] int first_digit(int level) const;
  [[nodiscard]] std::uint64_t wheel_next_time_ps() const;
  void add_chunk(Slot& slot);
  void push_apart(std::uint64_t time_ps, std::uint64_t order, EventHandler* handler, std::uint64_t argument_a,
                  std::uint64_t argument_b);
  void push_late(const Event& event);
  Event take_late();
  const Event& pop_late();
  void advance();
  void refill();
  void spread(Place place);
  bool give_whole(Place from);
  bool take_near(Place place);
  bool pays_whole(Place place);
  void drop_popped();
  Event* extend_near(std::size_t more);
  bool sort_by_digit(Place place, Event* sorted);
  void take_in_order(const Slot& slot, unsigned number_bits, unsigned unsure_bits, Event* sorted);
  void sort_by_order(Place place, Event* sorted);
  void enter(Place place);
  template <typename Visit>
  void visit_slot(Place place, Visit visit) const;
  void release(Place place);
  void vacate(Place place);
  void narrow_near();

  std::size_t size_ = 0;
  std::size_t near_cursor_ = 0;
  std::size_t near_count_ = 0;
  std::size_t advance_at_ = 0;  // where near_cursor_ has too few events before it
  LargeArray<Event> near_;      // sorted, from near_cursor_ to near_count_: never cleared for what comes
  struct OrderKey {
    std::uint64_t order = 0;
    const Event* event = nullptr;
  };
  LargeArray<OrderKey> keys_;  // of a sort by order: kept for the next
  LargeArray<OrderKey> sorted_keys_;
  std::vector<std::uint32_t> digit_ends_;  // of a sort by digit: kept for the next
  LargeArray<std::uint64_t> slot_keys_;    // in the order of the slot
  LargeArray<std::uint64_t> digit_keys_;
  LargeArray<std::uint32_t> digit_misplaced_;  // places where an event may belong before those before it
  std::vector<const Chunk*> digit_chunks_;
  std::uint64_t handled_ = 0;  // events taken out of the wheel, or pushed late
  // When a level's last slot of more than batch_always was reached.
  struct Reached {
    std::uint64_t handled = 0;
    std::uint64_t count = 0;   // of the slot
    std::uint32_t spread = 0;  // so many more are spread without a try: too many of its events were alike
  };
  std::array<Reached, level_count> reached_;
  std::vector<Event> late_;  // heap of what was pushed before near_end_ps_ after that was sorted
  static constexpr std::uint64_t none_late_ps = ~std::uint64_t{0};
  std::uint64_t late_ps_ = none_late_ps;  // the earliest of them
  Event popped_late_;
  std::uint64_t near_end_ps_ = 0;
  std::uint64_t wheel_base_ps_ = 0;
  std::uint64_t last_popped_ps_ = 0;
  int near_level_ = 0;
  std::array<std::uint64_t, static_cast<std::size_t>(level_count) * words_per_level>
      occupied_{};  // bit a slot
  std::vector<Slot> slots_;
  std::vector<LargeArray<Chunk>> chunk_blocks_;
  std::size_t chunk_count_ = 0;  // of all blocks
  Chunk* free_chunks_ = nullptr;
};

}  // namespace apenet
