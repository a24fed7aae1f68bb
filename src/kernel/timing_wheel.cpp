#include "kernel/timing_wheel.hpp"

namespace apenet {

int TimingWheel::first_digit(int level) const {
  for (int word = 0; word < words_per_level; ++word) {
    const std::uint64_t bits = occupied_[word_index(level, word)];
    if (bits != 0) return word * 64 + std::countr_zero(bits);
  }
  return slots_per_level;
}

TimingWheel::Place TimingWheel::first_place() const {
  for (int level = 0; level < level_count; ++level) {
    const int digit = first_digit(level);
    if (digit < slots_per_level) return {level, digit};
  }
  return {level_count, 0};
}

void TimingWheel::add_chunk(Slot& slot) {
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

void TimingWheel::release(Place place) {
  Slot& slot = slots_[slot_index(place)];
  slot.last->next = free_chunks_;
  free_chunks_ = slot.first;
  slot = {};
  vacate(place);
}

void TimingWheel::vacate(Place place) {
  occupied_[word_index(place.level, place.digit / 64)] &= ~(std::uint64_t{1} << place.digit % 64);
}

void TimingWheel::enter(Place place) {
  const unsigned shift = static_cast<unsigned>(place.level) * digit_bits;
  // In two steps: a shift by 64 bits, which the highest level would need, is undefined.
  const std::uint64_t above = base_ps_ >> shift >> digit_bits;
  base_ps_ = (above << digit_bits | static_cast<std::uint64_t>(place.digit)) << shift;
}

// The base time enters the slot first: an event placed during the spread must not precede it.
void TimingWheel::spread(Place from) {
  enter(from);
  if (move_whole(from)) return;
  const unsigned below = static_cast<unsigned>(from.level - 1) * digit_bits;
  visit(from, [this, below](const Event& event) {
    place_in(slot_index(below, event.time_ps), event.time_ps) = event;
  });
  release(from);
}

// Hands the chunks over where all events go into one slot of the level below, which is empty: events that a
// large machine schedules in step are not copied from level to level.
bool TimingWheel::move_whole(Place from) {
  Slot& slot = slots_[slot_index(from)];
  const unsigned shift = static_cast<unsigned>(from.level - 1) * digit_bits;
  if (slot.earliest_ps >> shift != slot.latest_ps >> shift) return false;
  const Place to{from.level - 1, static_cast<int>((slot.earliest_ps >> shift) % slots_per_level)};
  slots_[slot_index(to)] = slot;
  occupied_[word_index(to.level, to.digit / 64)] |= std::uint64_t{1} << to.digit % 64;
  slot = {};
  vacate(from);
  return true;
}

}  // namespace apenet
