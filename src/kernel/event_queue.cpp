#include "kernel/event_queue.hpp"

#include "kernel/check.hpp"

namespace apenet {

namespace {

// std::push_heap keeps the largest in front; the queue wants the earliest.
struct Later {
  bool operator()(const PendingEvent& left, const PendingEvent& right) const { return right.before(left); }
};

}  // namespace

EventQueue::EventQueue() : slots_(static_cast<std::size_t>(level_count) * slots_per_level) {}

EventQueue::~EventQueue() = default;

int EventQueue::lowest_level() const {
  for (int level = 0; level < level_count; ++level) {
    if (occupied_[static_cast<std::size_t>(level)] != 0) return level;
  }
  return level_count;
}

std::uint64_t EventQueue::wheel_next_time_ps() const {
  const int level = lowest_level();
  APENET_CHECK(level < level_count, "event queue of size %zu has an empty wheel", size_);
  const int digit = std::countr_zero(occupied_[static_cast<std::size_t>(level)]);
  return slots_[static_cast<std::size_t>(level * slots_per_level + digit)].earliest_ps;
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
  chunk->next = slot.chunks;
  slot.chunks = chunk;
}

template <typename Take>
void EventQueue::empty_slot(int level, int digit, Take take) {
  Slot& slot = slots_[static_cast<std::size_t>(level * slots_per_level + digit)];
  Chunk* chunk = slot.chunks;
  std::uint64_t filled = (slot.count - 1) % chunk_capacity + 1;
  slot.chunks = nullptr;
  slot.count = 0;
  occupied_[static_cast<std::size_t>(level)] &= ~(std::uint64_t{1} << digit);
  while (chunk != nullptr) {
    for (std::uint64_t i = 0; i < filled; ++i) take(chunk->events[i]);
    filled = chunk_capacity;
    Chunk* const next = chunk->next;
    chunk->next = free_chunks_;
    free_chunks_ = chunk;
    chunk = next;
  }
}

void EventQueue::spread(int level, int digit) {
  const int shift = level * digit_bits;
  const std::uint64_t above = wheel_base_ps_ >> shift >> digit_bits;
  wheel_base_ps_ = (above << digit_bits | static_cast<std::uint64_t>(digit)) << shift;
  empty_slot(level, digit, [this](const PendingEvent& event) { push_wheel(event); });
}

void EventQueue::take_near(int level, int digit) {
  const int shift = level * digit_bits;
  const std::uint64_t above = wheel_base_ps_ >> shift >> digit_bits;
  wheel_base_ps_ = (above << digit_bits | static_cast<std::uint64_t>(digit)) << shift;
  near_end_ps_ = wheel_base_ps_ + (std::uint64_t{1} << shift);
  near_level_ = level;
  empty_slot(level, digit, [this](const PendingEvent& event) { unsorted_.push_back(event); });
}

void EventQueue::refill() {
  int level = lowest_level();
  APENET_CHECK(level < level_count, "event queue of size %zu has an empty wheel", size_);
  const auto count_of = [this](int at_level, int digit) {
    return slots_[static_cast<std::size_t>(at_level * slots_per_level + digit)].count;
  };
  int digit = std::countr_zero(occupied_[static_cast<std::size_t>(level)]);
  while (level > 0 && count_of(level, digit) > sort_limit) {
    spread(level, digit);
    level = lowest_level();
    digit = std::countr_zero(occupied_[static_cast<std::size_t>(level)]);
  }
  unsorted_.clear();
  take_near(level, digit);
  // Neighbouring slots with few events are sorted together: one refill for several pops.
  const std::uint64_t& occupied = occupied_[static_cast<std::size_t>(level)];
  while (occupied != 0) {
    digit = std::countr_zero(occupied);
    if (unsorted_.size() + count_of(level, digit) > sort_limit) break;
    take_near(level, digit);
  }
  sort_near();
}

void EventQueue::sort_near() {
  near_cursor_ = 0;
  near_prepared_ = 0;
  const std::size_t count = unsorted_.size();
  if (count > sort_limit) {
    near_.swap(unsorted_);
    std::sort(near_.begin(), near_.end(),
              [](const PendingEvent& left, const PendingEvent& right) { return left.before(right); });
    return;
  }
  // Few events: each one's rank is the number of those before it. Quadratic, but without a branch to
  // mispredict.
  near_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t rank = 0;
    for (std::size_t j = 0; j < i; ++j) rank += unsorted_[i].before(unsorted_[j]) ? 0U : 1U;
    for (std::size_t j = i + 1; j < count; ++j) rank += unsorted_[j].before(unsorted_[i]) ? 1U : 0U;
    near_[rank] = unsorted_[i];
  }
}

void EventQueue::push_late(const PendingEvent& event) {
  late_.push_back(event);
  std::push_heap(late_.begin(), late_.end(), Later{});
  if (late_.size() > late_limit && near_level_ > 0) narrow_near();
}

PendingEvent EventQueue::pop_late() {
  std::pop_heap(late_.begin(), late_.end(), Later{});
  const PendingEvent event = late_.back();
  late_.pop_back();
  last_popped_ps_ = event.time_ps;
  return event;
}

// near_ spans so long a time that new events keep falling into it (a lone timer far ahead made it wide): back
// into the wheel with all of it; the next refill takes a finer slot. Costs at most a constant for each late
// push.
void EventQueue::narrow_near() {
  wheel_base_ps_ = last_popped_ps_;
  near_end_ps_ = 0;
  unsorted_.assign(near_.begin() + static_cast<std::ptrdiff_t>(near_cursor_), near_.end());
  unsorted_.insert(unsorted_.end(), late_.begin(), late_.end());
  near_.clear();
  near_cursor_ = 0;
  near_prepared_ = 0;
  late_.clear();
  for (const PendingEvent& event : unsorted_) push_wheel(event);
  unsorted_.clear();
}

}  // namespace apenet
