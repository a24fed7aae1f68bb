#include "kernel/event_queue.hpp"

#include "kernel/check.hpp"

namespace apenet {

namespace {

// std::push_heap keeps the largest in front; the queue wants the earliest.
struct Later {
  bool operator()(const Event& left, const Event& right) const { return right.before(left); }
};

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

template <typename Take>
void EventQueue::empty_slot(Place place, Take take) {
  Slot& slot = slots_[static_cast<std::size_t>(place.level * slots_per_level + place.digit)];
  Chunk* chunk = slot.first;
  std::uint64_t left = slot.count;
  slot.first = nullptr;
  slot.last = nullptr;
  slot.count = 0;
  occupied_[static_cast<std::size_t>(place.level * words_per_level + place.digit / 64)] &=
      ~(std::uint64_t{1} << place.digit % 64);
  while (chunk != nullptr) {
    const std::uint64_t filled = std::min<std::uint64_t>(left, chunk_capacity);
    for (std::uint64_t i = 0; i < filled; ++i) take(chunk->events[i]);
    left -= filled;
    Chunk* const next = chunk->next;
    chunk->next = free_chunks_;
    free_chunks_ = chunk;
    chunk = next;
  }
}

// The wheel's time reaches the slot.
void EventQueue::enter(Place place) {
  const int shift = place.level * digit_bits;
  // In two steps: the highest level's digit ends at the last bit.
  const std::uint64_t above = wheel_base_ps_ >> shift >> digit_bits;
  wheel_base_ps_ = (above << digit_bits | static_cast<std::uint64_t>(place.digit)) << shift;
}

void EventQueue::spread(Place from) {
  enter(from);
  empty_slot(from, [this](const Event& event) { place(event.time_ps) = event; });
}

void EventQueue::take_near(Place place) {
  enter(place);
  near_end_ps_ = wheel_base_ps_ + (std::uint64_t{1} << (place.level * digit_bits));
  near_level_ = place.level;
  empty_slot(place, [this](const Event& event) { unsorted_.push_back(event); });
}

// The batch that follows, and behind it another one.
void EventQueue::advance() {
  near_.swap(next_);
  near_cursor_ = 0;
  next_.clear();
  const std::size_t in_wheel = size_ + 1 - near_.size() - late_.size();  // one is being popped
  if (near_.empty() && late_.empty()) {
    refill();
    near_.swap(next_);
    next_.clear();
    if (in_wheel > near_.size()) refill();
  } else if (in_wheel > 0 && !near_.empty()) {
    refill();
  }
}

// Takes the next batch out of the wheel into next_.
void EventQueue::refill() {
  Place place = first_place();
  APENET_CHECK(place.level < level_count, "event queue of size %zu has an empty wheel", size_);
  while (place.level > 0 && slot_at(place).count > sort_limit) {
    spread(place);
    place = first_place();
  }
  unsorted_.clear();
  const int level = place.level;
  take_near(place);
  // Neighbouring slots with few events are sorted together: one refill for several pops.
  for (int digit = first_digit(level); digit < slots_per_level; digit = first_digit(level)) {
    if (unsorted_.size() + slot_at({level, digit}).count > sort_limit) break;
    take_near({level, digit});
  }
  sort_batch();
}

void EventQueue::sort_batch() {
  const std::size_t count = unsorted_.size();
  if (count > sort_limit) {
    next_.swap(unsorted_);
    const auto is_before = [](const Event& left, const Event& right) { return left.before(right); };
    // Components that all do the same at the same time schedule in the order of their sources.
    if (!std::is_sorted(next_.begin(), next_.end(), is_before))
      std::sort(next_.begin(), next_.end(), is_before);
    return;
  }
  // Few events: each one's rank is the number of those before it. Quadratic, but without a branch to
  // mispredict.
  std::array<std::uint32_t, sort_limit> rank{};
  for (std::uint32_t i = 1; i < count; ++i) {
    std::uint32_t before_i = 0;
    for (std::uint32_t j = 0; j < i; ++j) {
      const std::uint32_t is_later = unsorted_[i].before(unsorted_[j]) ? 1U : 0U;
      rank[j] += is_later;
      before_i += 1U - is_later;
    }
    rank[i] = before_i;
  }
  next_.resize(count);
  for (std::size_t i = 0; i < count; ++i) next_[rank[i]] = unsorted_[i];
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
  unsorted_.assign(near_.begin() + static_cast<std::ptrdiff_t>(near_cursor_), near_.end());
  unsorted_.insert(unsorted_.end(), next_.begin(), next_.end());
  unsorted_.insert(unsorted_.end(), late_.begin(), late_.end());
  for (int level = 0; level < highest; ++level) {
    for (int digit = first_digit(level); digit < slots_per_level; digit = first_digit(level)) {
      empty_slot({level, digit}, [this](const Event& event) { unsorted_.push_back(event); });
    }
  }
  wheel_base_ps_ = last_popped_ps_;
  near_end_ps_ = 0;
  near_cursor_ = near_.size();  // not cleared: the event that is being handled is in it
  prepared_ = 0;
  next_.clear();
  late_.clear();
  for (const Event& event : unsorted_) place(event.time_ps) = event;
}

void EventQueue::announce() {
  if (prepared_ > 0) --prepared_;  // the event popped
  const std::size_t in_near = near_.size() - near_cursor_;
  const std::size_t known = std::min(prepare_far, in_near + next_.size());
  const auto coming = [&](std::size_t i) -> const Event& {
    return i < in_near ? near_[near_cursor_ + i] : next_[i - in_near];
  };
  for (; prepared_ < known; ++prepared_) {
    const Event& event = coming(prepared_);
    event.handler->prepare(event, EventHandler::Ahead::far);
  }
  if (prepare_close < known) {
    const Event& event = coming(prepare_close);
    event.handler->prepare(event, EventHandler::Ahead::close);
  }
}

}  // namespace apenet
