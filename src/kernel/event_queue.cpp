#include "kernel/event_queue.hpp"

#include "kernel/check.hpp"

namespace apenet {

namespace {

// std::push_heap keeps the largest in front; the queue wants the earliest.
struct Later {
  bool operator()(const Event& left, const Event& right) const { return right.before(left); }
};

// Events of one slot: few, or of components that all do the same at the same time, and schedule in the order
// of their sources.
void sort_events(Event* events, std::size_t count) {
  constexpr std::size_t few = 16;
  const auto is_before = [](const Event& left, const Event& right) { return left.before(right); };
  if (count > few) {
    if (!std::is_sorted(events, events + count, is_before)) std::sort(events, events + count, is_before);
    return;
  }
  for (std::size_t i = 1; i < count; ++i) {
    if (!events[i].before(events[i - 1])) continue;
    const Event event = events[i];
    std::size_t at = i;
    do {
      events[at] = events[at - 1];
    } while (--at > 0 && event.before(events[at - 1]));
    events[at] = event;
  }
}

}  // namespace

EventQueue::EventQueue() : slots_(static_cast<std::size_t>(level_count) * slots_per_level) {}

EventQueue::~EventQueue() = default;

// slots_per_level when the level is empty.
int EventQueue::first_digit(int level) const {
  for (int word = 0; word < words_per_level; ++word) {
    const std::uint64_t bits = occupied_[static_cast<std::size_t>(level * words_per_level + word)];
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
    constexpr std::size_t chunks_per_block = 64;
    Chunk* block = chunk_blocks_.emplace_back(std::make_unique<Chunk[]>(chunks_per_block)).get();
    for (std::size_t i = chunks_per_block; i-- > 0;) {
      block[i].next = free_chunks_;
      free_chunks_ = &block[i];
    }
  }
  Chunk* chunk = free_chunks_;
  free_chunks_ = chunk->next;
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
    for (std::uint64_t i = 0; i < filled; ++i) visit(chunk->events[i]);
    left -= filled;
  }
}

// The slot is empty.
void EventQueue::release(Place place) {
  Slot& slot = slots_[static_cast<std::size_t>(place.level * slots_per_level + place.digit)];
  slot.last->next = free_chunks_;
  free_chunks_ = slot.first;
  slot = {};
  occupied_[static_cast<std::size_t>(place.level * words_per_level + place.digit / 64)] &=
      ~(std::uint64_t{1} << place.digit % 64);
}

// The wheel's time reaches the slot.
void EventQueue::enter(Place place) {
  const int shift = place.level * digit_bits;
  // In two steps: the highest level's digit ends at the last bit.
  const std::uint64_t above = wheel_base_ps_ >> shift >> digit_bits;
  wheel_base_ps_ = (above << digit_bits | static_cast<std::uint64_t>(place.digit)) << shift;
}

// Into lower levels, never into the slot itself.
void EventQueue::spread(Place from) {
  enter(from);
  visit_slot(from, [this](const Event& event) { place(event.time_ps) = event; });
  release(from);
}

// The slot's events follow those of next_.
void EventQueue::take_near(Place place) {
  enter(place);
  near_end_ps_ = wheel_base_ps_ + (std::uint64_t{1} << (place.level * digit_bits));
  near_level_ = place.level;
  const auto count = static_cast<std::size_t>(slot_at(place).count);
  Event* const sorted = next_.extend(count);
  if (count > batch_target && place.level > 0) {
    sort_by_digit(place, sorted);
  } else {
    Event* end = sorted;
    visit_slot(place, [&end](const Event& event) { *end++ = event; });
    sort_events(sorted, count);
  }
  release(place);
}

// The same as spreading the slot over the level below and taking it from there, without the slots' lists.
void EventQueue::sort_by_digit(Place place, Event* sorted) {
  const int shift = (place.level - 1) * digit_bits;
  const auto digit_of = [shift](const Event& event) {
    return static_cast<std::size_t>((event.time_ps >> shift) % slots_per_level);
  };
  std::array<std::uint32_t, slots_per_level> end{};  // counts at first
  std::array<std::uint64_t, words_per_level> occupied{};
  visit_slot(place, [&](const Event& event) {
    const std::size_t digit = digit_of(event);
    ++end[digit];
    occupied[digit / 64] |= std::uint64_t{1} << digit % 64;
  });
  const auto visit_digits = [&occupied](auto visit) {
    for (std::size_t word = 0; word < words_per_level; ++word) {
      for (std::uint64_t bits = occupied[word]; bits != 0; bits &= bits - 1) {
        visit(word * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
      }
    }
  };
  std::uint32_t begin = 0;
  visit_digits([&](std::size_t digit) {
    const std::uint32_t count = end[digit];
    end[digit] = begin;
    begin += count;
  });
  visit_slot(place, [&](const Event& event) { sorted[end[digit_of(event)]++] = event; });
  begin = 0;
  visit_digits([&](std::size_t digit) {
    sort_events(sorted + begin, end[digit] - begin);
    begin = end[digit];
  });
}

// The batch that follows, and behind it another one.
void EventQueue::advance() {
  std::swap(near_, next_);
  near_cursor_ = 0;
  next_.count = 0;
  const std::size_t in_wheel = size_ + 1 - near_.count - late_.size();  // one is being popped
  if (near_.count == 0 && late_.empty()) {
    refill();
    std::swap(near_, next_);
    next_.count = 0;
    if (in_wheel > near_.count) refill();
  } else if (in_wheel > 0 && near_.count > 0) {
    refill();
  }
}

// Takes the next batch out of the wheel into next_, which is empty.
void EventQueue::refill() {
  Place place = first_place();
  APENET_CHECK(place.level < level_count, "event queue of size %zu has an empty wheel", size_);
  while (place.level > 0 && slot_at(place).count > batch_limit) {
    spread(place);
    place = first_place();
  }
  const int level = place.level;
  take_near(place);
  // Neighbouring slots with few events are taken together: one refill for several pops.
  for (int digit = first_digit(level); digit < slots_per_level; digit = first_digit(level)) {
    if (next_.count + slot_at({level, digit}).count > batch_target) break;
    take_near({level, digit});
  }
}

void EventQueue::push_late(const Event& event) {
  late_.push_back(event);
  std::push_heap(late_.begin(), late_.end(), Later{});
  if (late_.size() > late_limit && near_level_ > 0) narrow_near();
}

const Event& EventQueue::pop_late() {
  std::pop_heap(late_.begin(), late_.end(), Later{});
  popped_late_ = late_.back();
  late_.pop_back();
  last_popped_ps_ = popped_late_.time_ps;
  return popped_late_;
}

// The sorted batches span so long a time that new events keep falling into it (a lone timer far ahead made
// it wide): back into the wheel with all of it; the next refill takes a finer slot. The wheel goes back to
// the time of the last event popped. Where that differs from its base in a higher digit than those of the
// levels below, these are events of that digit again.
void EventQueue::narrow_near() {
  const std::uint64_t difference = last_popped_ps_ ^ wheel_base_ps_;
  const int highest = difference == 0 ? 0 : (std::bit_width(difference) - 1) / digit_bits;
  std::vector<Event> events(near_.events.data() + near_cursor_, near_.events.data() + near_.count);
  events.insert(events.end(), next_.events.data(), next_.events.data() + next_.count);
  events.insert(events.end(), late_.begin(), late_.end());
  for (int level = 0; level < highest; ++level) {
    for (int digit = first_digit(level); digit < slots_per_level; digit = first_digit(level)) {
      visit_slot({level, digit}, [&events](const Event& event) { events.push_back(event); });
      release({level, digit});
    }
  }
  wheel_base_ps_ = last_popped_ps_;
  near_end_ps_ = 0;
  near_cursor_ = near_.count;  // not cleared: the event that is being handled is in it
  prepared_far_ = 0;
  prepared_close_ = 0;
  next_.count = 0;
  late_.clear();
  for (const Event& event : events) place(event.time_ps) = event;
}

void EventQueue::announce() {
  if (prepared_far_ > 0) --prepared_far_;  // the event popped
  if (prepared_close_ > 0) --prepared_close_;
  const std::size_t in_near = near_.count - near_cursor_;
  const std::size_t known = in_near + next_.count;
  const auto coming = [&](std::size_t i) -> const Event& {
    return i < in_near ? near_.events[near_cursor_ + i] : next_.events[i - in_near];
  };
  for (; prepared_far_ < std::min(prepare_far, known); ++prepared_far_) {
    const Event& event = coming(prepared_far_);
    event.handler->prepare(event, EventHandler::Ahead::far);
  }
  // Far first, for those of a small batch that are at once both: what they name is on its way at least.
  for (; prepared_close_ < std::min(prepare_close, known); ++prepared_close_) {
    const Event& event = coming(prepared_close_);
    event.handler->prepare(event, EventHandler::Ahead::close);
  }
}

}  // namespace apenet
