#include "kernel/event_queue.hpp"

#include <numeric>

#include "kernel/check.hpp"

namespace apenet {

namespace {

// std::push_heap keeps the largest in front; the queue wants the earliest.
struct Later {
  bool operator()(const Event& left, const Event& right) const { return right.before(left); }
};

constexpr std::size_t few = 16;  // events that are sorted by counting

// Writes the events, at most `few`, in their order: each behind all that are before it. As many comparisons
// as there are pairs, but none of them is a branch, which half of the time would be mispredicted.
void sort_few(const Event* events, std::size_t count, Event* sorted) {
  std::array<std::uint8_t, few> place{};
  for (std::size_t i = 1; i < count; ++i) {
    std::uint8_t before = 0;
    for (std::size_t j = 0; j < i; ++j) {
      const auto is_later = static_cast<std::uint8_t>(events[i].before(events[j]));
      place[j] = static_cast<std::uint8_t>(place[j] + is_later);
      before = static_cast<std::uint8_t>(before + 1 - is_later);
    }
    place[i] = before;
  }
  for (std::size_t i = 0; i < count; ++i) sorted[place[i]] = events[i];
}

constexpr std::size_t many_alike = 256;  // events that are sorted by comparison

constexpr auto is_before = [](const Event& left, const Event& right) { return left.before(right); };

// Brings keys nearer to their order: each may overtake a few. Neighbours are exchanged by a mask: a branch
// would be mispredicted half of the time.
void sort_neighbours(std::uint64_t* keys, std::size_t count) {
  constexpr std::size_t rounds = 3;
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 1 + round % 2; i < count; i += 2) {
      const std::uint64_t first = keys[i - 1];
      const std::uint64_t second = keys[i];
      const std::uint64_t exchanged = (first ^ second) & (0 - static_cast<std::uint64_t>(second < first));
      keys[i - 1] = first ^ exchanged;
      keys[i] = second ^ exchanged;
    }
  }
}

// The last event goes back to its place among those before it, which are in order.
void insert_last(Event* events, std::size_t last) {
  const Event event = events[last];
  std::size_t place = last;
  for (; place > 0 && event.before(events[place - 1]); --place) events[place] = events[place - 1];
  events[place] = event;
}

}  // namespace

// Not in the header: the compiler would compare every handler's with it before each call.
void EventHandler::prepare(const Event& /*event*/, Ahead /*ahead*/) const {}

EventQueue::EventQueue() : slots_(static_cast<std::size_t>(level_count) * slots_per_level) {}

EventQueue::~EventQueue() = default;

// slots_per_level when the level is empty.
int EventQueue::first_digit(int level) const {
  for (int word = 0; word < words_per_level; ++word) {
    const std::uint64_t bits = occupied_[word_index(level, word)];
    if (bits != 0) return word * 64 + std::countr_zero(bits);
  }
  return slots_per_level;
}

// Level level_count when the wheel is empty.
EventQueue::Place EventQueue::first_place() const {
  for (int level = 0; level < level_count; ++level) {
    const int digit = first_digit(level);
    if (digit < slots_per_level) return {level, digit};
  }
  return {level_count, 0};
}

std::uint64_t EventQueue::wheel_next_time_ps() const {
  const Place place = first_place();
  APENET_CHECK(place.level < level_count, "event queue of size %zu has an empty wheel", size_);
  return slot_at(place).earliest_ps;
}

void EventQueue::add_chunk(Slot& slot) {
  if (free_chunks_ == nullptr) {
    constexpr std::size_t least_chunks = 64;
    LargeArray<Chunk>& block = chunk_blocks_.emplace_back(std::max(least_chunks, chunk_count_ / 2));
    chunk_count_ += block.size();
    for (std::size_t i = block.size(); i-- > 0;) {
      block[i].next = free_chunks_;
      free_chunks_ = &block[i];
    }
  }
  Chunk* chunk = free_chunks_;
  free_chunks_ = chunk->next;
  if (free_chunks_ != nullptr) __builtin_prefetch(&free_chunks_->next);
  chunk->next = nullptr;
  (slot.first == nullptr ? slot.first : slot.last->next) = chunk;
  slot.last = chunk;
}

template <typename Visit>
void EventQueue::visit_slot(Place place, Visit visit) const {
  const Slot& slot = slot_at(place);
  std::uint64_t left = slot.count;
  for (const Chunk* chunk = slot.first; chunk != nullptr; chunk = chunk->next) {
    const std::uint64_t filled = std::min<std::uint64_t>(left, chunk_capacity);
    const Event* const events = chunk->events.data();
    const Event* const coming = chunk->next == nullptr ? events : chunk->next->events.data();
    for (std::uint64_t i = 0; i < filled; ++i) {
      __builtin_prefetch(coming + i);
      visit(events[i]);
    }
    left -= filled;
  }
}

// The slot is empty.
void EventQueue::release(Place place) {
  Slot& slot = slots_[slot_index(place)];
  slot.last->next = free_chunks_;
  free_chunks_ = slot.first;
  slot = {};
  vacate(place);
}

void EventQueue::vacate(Place place) {
  occupied_[word_index(place.level, place.digit / 64)] &= ~(std::uint64_t{1} << place.digit % 64);
}

// The wheel's time reaches the slot.
void EventQueue::enter(Place place) {
  const unsigned shift = static_cast<unsigned>(place.level) * digit_bits;
  // In two steps: the highest level's digit ends at the last bit.
  const std::uint64_t above = wheel_base_ps_ >> shift >> digit_bits;
  wheel_base_ps_ = (above << digit_bits | static_cast<std::uint64_t>(place.digit)) << shift;
}

// Into the level below, and if there into what has been reached already, then that is the first place: no
// event may be placed before it has been taken or spread in its turn.
void EventQueue::spread(Place from) {
  enter(from);
  if (give_whole(from)) return;
  const unsigned below = static_cast<unsigned>(from.level - 1) * digit_bits;
  visit_slot(from, [this, below](const Event& event) {
    place(slot_index(below, event.time_ps), event.time_ps) = event;
  });
  release(from);
}

// To the one slot of the level below that all its events go into, if it is one: what a large machine does in
// step is not copied from level to level. That slot is empty, as the whole level is.
bool EventQueue::give_whole(Place from) {
  Slot& slot = slots_[slot_index(from)];
  const unsigned shift = static_cast<unsigned>(from.level - 1) * digit_bits;
  if (slot.earliest_ps >> shift != slot.latest_ps >> shift) return false;
  const auto digit = static_cast<std::size_t>((slot.earliest_ps >> shift) % slots_per_level);
  const std::size_t level = static_cast<std::size_t>(from.level) - 1;
  slots_[level * slots_per_level + digit] = slot;
  occupied_[level * words_per_level + digit / 64] |= std::uint64_t{1} << digit % 64;
  slot = {};
  vacate(from);
  return true;
}

// The slot's events follow those of near_; false if the slot has to be spread before.
bool EventQueue::take_near(Place place) {
  const auto count = static_cast<std::size_t>(slot_at(place).count);
  if (place.level > 0 && count > batch_always && !pays_whole(place)) return false;
  Event* const sorted = extend_near(count);
  if (count <= few) {
    sort_few(slot_at(place).first->events.data(), count, sorted);
  } else if (place.level == 0) {
    sort_by_order(place, sorted);
  } else if (!sort_by_digit(place, sorted)) {
    near_count_ -= count;
    reached_[static_cast<std::size_t>(place.level)].spread = spread_alike;
    return false;
  }
  enter(place);
  near_end_ps_ = wheel_base_ps_ + (std::uint64_t{1} << (static_cast<unsigned>(place.level) * digit_bits));
  near_level_ = place.level;
  handled_ += count;
  release(place);
  return true;
}

// By what happened since the last such slot of the level was reached: what was handled beside its events had
// been pushed into its time later, and is late if the slot is sorted as a whole.
bool EventQueue::pays_whole(Place place) {
  const std::uint64_t count = slot_at(place).count;
  Reached& last = reached_[static_cast<std::size_t>(place.level)];
  const std::uint64_t later = handled_ - last.handled - last.count;
  const bool pays = count <= batch_limit && later * late_share <= last.count && last.spread == 0;
  last = {handled_, count, last.spread - static_cast<std::uint32_t>(last.spread > 0)};
  return pays;
}

// Events of one time, of components that all do the same then. Often they scheduled in the order of their
// sources. Where not, it is a large machine whose events do not fit the cache: their order words are sorted,
// digit by digit from the lowest, of those in which they differ at all; the events move once.
void EventQueue::sort_by_order(Place place, Event* sorted) {
  constexpr unsigned order_digit_bits = 11;
  constexpr std::uint64_t order_digits = std::uint64_t{1} << order_digit_bits;
  constexpr std::size_t least_by_digits = 256;
  const auto comes_before = [](const OrderKey& left, const OrderKey& right) {
    return left.order < right.order;
  };
  keys_.clear();
  std::uint64_t differing = 0;
  bool is_sorted = true;
  visit_slot(place, [&](const Event& event) {
    if (!keys_.empty()) {
      differing |= event.order ^ keys_.back().order;
      is_sorted &= event.order >= keys_.back().order;
    }
    keys_.push_back({event.order, &event});
  });
  if (!is_sorted && keys_.size() < least_by_digits) {
    std::sort(keys_.begin(), keys_.end(), comes_before);
    is_sorted = true;
  }
  if (is_sorted) differing = 0;
  sorted_keys_.resize(keys_.size());
  while (differing != 0) {
    const auto shift = static_cast<unsigned>(std::countr_zero(differing));
    differing &= ~((order_digits - 1) << shift);
    const auto digit_of = [shift](const OrderKey& key) {
      return static_cast<std::size_t>((key.order >> shift) % order_digits);
    };
    std::array<std::uint32_t, order_digits> end{};  // counts at first
    for (const OrderKey& key : keys_) ++end[digit_of(key)];
    std::exclusive_scan(end.begin(), end.end(), end.begin(), 0U);
    for (const OrderKey& key : keys_) sorted_keys_[end[digit_of(key)]++] = key;
    keys_.swap(sorted_keys_);
  }
  for (const OrderKey& key : keys_) *sorted++ = *key.event;
}

// By so many of the first digits in which its events' times may differ that most are then alone; false if
// many of them coincide. Sorted are words of time, kind and source, with the event's number in the slot
// behind them: the events move once.
bool EventQueue::sort_by_digit(Place place, Event* sorted) {
  const Slot& slot = slot_at(place);
  const std::uint64_t earliest_ps = slot.earliest_ps;
  const auto range_bits = static_cast<unsigned>(std::bit_width(slot.latest_ps - earliest_ps));
  const auto number_bits = static_cast<unsigned>(std::bit_width(slot.count - 1));
  const unsigned below_time = PackedOrder::kind_bits + PackedOrder::source_bits + number_bits;
  const unsigned left_out = std::max(range_bits + below_time, 64U) - 64;  // of times seconds apart
  const unsigned bits = std::min(range_bits, static_cast<unsigned>(std::bit_width(slot.count)));
  const unsigned shift = below_time + range_bits - left_out - bits;
  digit_ends_.assign(std::size_t{1} << bits, 0);
  slot_keys_.resize(slot.count);
  std::uint64_t number = 0;
  visit_slot(place, [&](const Event& event) {
    const std::uint64_t key = (event.time_ps - earliest_ps) >> left_out << below_time |
                              event.order >> PackedOrder::counter_bits << number_bits | number;
    slot_keys_[number++] = key;
    ++digit_ends_[key >> shift];
  });
  std::uint32_t begin = 0;
  std::uint32_t most = 0;
  for (std::uint32_t& end : digit_ends_) {
    const std::uint32_t count = end;
    most = std::max(most, count);
    end = begin;
    begin += count;
  }
  if (most > many_alike) return false;
  digit_keys_.resize(slot.count);
  std::uint64_t* const keys = digit_keys_.data();
  for (const std::uint64_t key : slot_keys_) keys[digit_ends_[key >> shift]++] = key;
  if (most > few) {
    begin = 0;
    for (const std::uint32_t end : digit_ends_) {
      if (end - begin > few) std::sort(keys + begin, keys + end);
      begin = end;
    }
  }
  sort_neighbours(keys, slot.count);
  // Where times are not whole, what is behind them says nothing.
  take_in_order(slot, number_bits, left_out == 0 ? number_bits : below_time, sorted);
  return true;
}

// Of digit_keys_, which leave little to sort: what lies far apart, and what is alike above their unsure bits.
void EventQueue::take_in_order(const Slot& slot, unsigned number_bits, unsigned unsure_bits, Event* sorted) {
  digit_chunks_.clear();
  for (const Chunk* chunk = slot.first; chunk != nullptr; chunk = chunk->next) digit_chunks_.push_back(chunk);
  const std::uint64_t number_mask = (std::uint64_t{1} << number_bits) - 1;
  std::uint64_t highest = 0;
  std::uint32_t count = 0;
  digit_misplaced_.resize(slot.count);
  std::size_t misplaced_count = 0;
  for (const std::uint64_t key : digit_keys_) {
    const std::uint64_t number = key & number_mask;
    sorted[count] = digit_chunks_[number / chunk_capacity]->events[number % chunk_capacity];
    // Listed, and moved afterwards: a branch here would be mispredicted for every one of them.
    digit_misplaced_[misplaced_count] = count++;
    misplaced_count += static_cast<std::size_t>(key >> unsure_bits <= highest);
    highest = std::max(highest, key >> unsure_bits);
  }
  for (std::size_t i = 0; i < misplaced_count; ++i) insert_last(sorted, digit_misplaced_[i]);
}

// Sorts until so many events are known as shall be: at least the next one. Late events come before any of the
// wheel: where nothing else is near, the first of them is.
void EventQueue::advance() {
  const std::size_t ahead = size_ > prepare_above ? prepare_handler : 0;
  if (near_cursor_ >= near_kept) drop_popped();
  if (near_cursor_ == near_count_ && !late_.empty()) {
    *extend_near(1) = take_late();
  } else {
    std::size_t in_wheel = size_ - (near_count_ - near_cursor_) - late_.size();
    while (near_cursor_ + ahead >= near_count_ && in_wheel > 0) {
      const std::size_t before = near_count_;
      refill();
      in_wheel -= near_count_ - before;
    }
  }
  advance_at_ = near_count_ - std::min(near_count_, ahead);
}

void EventQueue::drop_popped() {
  const auto first = near_.begin() + static_cast<std::ptrdiff_t>(near_cursor_);
  std::copy(first, near_.begin() + static_cast<std::ptrdiff_t>(near_count_), near_.begin());
  near_count_ -= near_cursor_;
  near_cursor_ = 0;
}

// The place of so many more.
Event* EventQueue::extend_near(std::size_t more) {
  if (near_count_ + more > near_.size()) near_.resize(std::max(near_count_ + more, 2 * near_.size()));
  near_count_ += more;
  return near_.data() + (near_count_ - more);
}

// Takes the next batch out of the wheel.
void EventQueue::refill() {
  Place place = first_place();
  APENET_CHECK(place.level < level_count, "event queue of size %zu has an empty wheel", size_);
  const std::size_t before = near_count_;
  while (!take_near(place)) {
    spread(place);
    place = first_place();
  }
  const int level = place.level;
  // Neighbouring slots with few events are taken together: one refill for several pops.
  for (int digit = first_digit(level); digit < slots_per_level; digit = first_digit(level)) {
    if (near_count_ - before + slot_at({level, digit}).count > batch_target) break;
    take_near({level, digit});
  }
}

// What push does not do itself.
void EventQueue::push_apart(std::uint64_t time_ps, std::uint64_t order, EventHandler* handler,
                            std::uint64_t argument_a, std::uint64_t argument_b) {
  const Event event{time_ps, order, handler, argument_a, argument_b};
  if (time_ps < near_end_ps_) {
    push_late(event);
  } else {
    place(slot_index(time_ps), time_ps) = event;
  }
}

void EventQueue::push_late(const Event& event) {
  ++handled_;
  late_.push_back(event);
  std::push_heap(late_.begin(), late_.end(), Later{});
  late_ps_ = late_.front().time_ps;
  if (late_.size() > late_limit && near_level_ > 0) narrow_near();
}

// The first of them; requires that there is one.
Event EventQueue::take_late() {
  std::pop_heap(late_.begin(), late_.end(), Later{});
  const Event event = late_.back();
  late_.pop_back();
  late_ps_ = late_.empty() ? none_late_ps : late_.front().time_ps;
  return event;
}

const Event& EventQueue::pop_late() {
  popped_late_ = take_late();
  last_popped_ps_ = popped_late_.time_ps;
  return popped_late_;
}

// The sorted batches span so long a time that new events keep falling into it (a lone timer far ahead made
// it wide): back into the wheel with all of it; the next refill takes a finer slot. The wheel goes back to
// the time of the last event popped. Where that differs from its base in a higher digit than those of the
// levels below, these are events of that digit again.
void EventQueue::narrow_near() {
  const std::uint64_t difference = last_popped_ps_ ^ wheel_base_ps_;
  const int highest = (std::bit_width(difference | 1U) - 1) / static_cast<int>(digit_bits);
  std::vector<Event> events(near_.data() + near_cursor_, near_.data() + near_count_);
  events.insert(events.end(), late_.begin(), late_.end());
  for (int level = 0; level < highest; ++level) {
    for (int digit = first_digit(level); digit < slots_per_level; digit = first_digit(level)) {
      visit_slot({level, digit}, [&events](const Event& event) { events.push_back(event); });
      release({level, digit});
    }
  }
  wheel_base_ps_ = last_popped_ps_;
  near_end_ps_ = 0;
  near_count_ = near_cursor_;  // the event that is being handled is before that
  advance_at_ = 0;
  late_.clear();
  late_ps_ = none_late_ps;
  for (const Event& event : events) place(slot_index(event.time_ps), event.time_ps) = event;
}

}  // namespace apenet
