// TimingWheel: pending events in slots of time, unsorted within a slot.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/event.hpp"
#include "kernel/large_array.hpp"

namespace apenet {

// A hierarchical timing wheel: 8 levels of 256 slots, one bit a slot, so that placing an event is an append
// and finding the next occupied slot counts trailing zeros.
//
// Invariants: an event lies at the level of its highest digit (base 256) that differs from the base time; a
// slot keeps the order of insertion; the base time never passes an event of the wheel.
class TimingWheel {
 public:
  static constexpr unsigned digit_bits = 8;
  static constexpr int slots_per_level = 1 << digit_bits;
  static constexpr int level_count = 8;
  static constexpr std::uint32_t chunk_capacity = 16;

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

    [[nodiscard]] std::size_t room_used() const { return static_cast<std::size_t>(count % chunk_capacity); }
  };
  struct Place {
    int level = 0;
    int digit = 0;
  };

  TimingWheel() : slots_(static_cast<std::size_t>(level_count) * slots_per_level) {}

  [[nodiscard]] std::uint64_t base_ps() const { return base_ps_; }
  void set_base(std::uint64_t base_ps) { base_ps_ = base_ps; }

  // The slot in which an event of this time belongs. Requires time_ps >= base_ps().
  [[nodiscard]] Slot& slot_of(std::uint64_t time_ps) { return slots_[slot_index(time_ps)]; }
  [[nodiscard]] const Slot& slot_at(Place place) const { return slots_[slot_index(place)]; }

  // The place for one more event of the slot. Requires room in its last chunk: room_used() != 0.
  static Event& append(Slot& slot, std::uint64_t time_ps) {
    const std::size_t position = slot.room_used();
    ++slot.count;
    slot.earliest_ps = std::min(slot.earliest_ps, time_ps);
    slot.latest_ps = std::max(slot.latest_ps, time_ps);
    return slot.last->events[position];
  }
  // The place for one more event, wherever it belongs.
  Event& place(std::uint64_t time_ps) { return place_in(slot_index(time_ps), time_ps); }

  // Level level_count when the wheel is empty.
  [[nodiscard]] Place first_place() const;
  // slots_per_level when the level is empty.
  [[nodiscard]] int first_digit(int level) const;

  // Calls visit(event) for the events of a slot in the order of insertion.
  template <typename Visit>
  void visit(Place place, Visit visit_event) const {
    const Slot& slot = slot_at(place);
    std::uint64_t left = slot.count;
    for (const Chunk* chunk = slot.first; chunk != nullptr; chunk = chunk->next) {
      const std::uint64_t filled = std::min<std::uint64_t>(left, chunk_capacity);
      const Event* const events = chunk->events.data();
      const Event* const coming = chunk->next == nullptr ? events : chunk->next->events.data();
      for (std::uint64_t i = 0; i < filled; ++i) {
        __builtin_prefetch(coming + i);
        visit_event(events[i]);
      }
      left -= filled;
    }
  }

  // Advances the base time to the slot.
  void enter(Place place);
  // Moves the events of a slot to the level below. Requires level > 0.
  void spread(Place from);
  // Empties a slot.
  void release(Place place);

 private:
  static constexpr int words_per_level = slots_per_level / 64;

  [[nodiscard]] static constexpr std::size_t slot_index(Place place) {
    return static_cast<std::size_t>(place.level) * slots_per_level + static_cast<std::size_t>(place.digit);
  }
  [[nodiscard]] static constexpr std::size_t word_index(int level, int word) {
    return static_cast<std::size_t>(level) * words_per_level + static_cast<std::size_t>(word);
  }
  // The shift of a level's digit is the level times digit_bits: the position of the highest differing bit
  // with its low bits cleared.
  [[nodiscard]] std::size_t slot_index(std::uint64_t time_ps) const {
    static_assert(std::has_single_bit(digit_bits));
    const auto highest = static_cast<unsigned>(std::bit_width((time_ps ^ base_ps_) | 1U) - 1);
    return slot_index(highest & ~(digit_bits - 1), time_ps);
  }
  [[nodiscard]] static std::size_t slot_index(unsigned shift, std::uint64_t time_ps) {
    return std::size_t{shift} * (slots_per_level / digit_bits) + (time_ps >> shift) % slots_per_level;
  }
  Event& place_in(std::size_t index, std::uint64_t time_ps) {
    Slot& slot = slots_[index];
    if (slot.room_used() == 0) [[unlikely]] {
      if (slot.count == 0) {
        occupied_[index / 64] |= std::uint64_t{1} << index % 64;
        slot.earliest_ps = time_ps;
        slot.latest_ps = time_ps;
      }
      add_chunk(slot);
    }
    return append(slot, time_ps);
  }
  void add_chunk(Slot& slot);
  bool move_whole(Place from);
  void vacate(Place place);

  std::uint64_t base_ps_ = 0;
  std::array<std::uint64_t, static_cast<std::size_t>(level_count) * words_per_level>
      occupied_{};  // one bit a slot
  std::vector<Slot> slots_;
  std::vector<LargeArray<Chunk>> chunk_blocks_;
  std::size_t chunk_count_ = 0;  // sum over all blocks
  Chunk* free_chunks_ = nullptr;
};

}  // namespace apenet
