// BatchSort: brings the events of one slot of the timing wheel into their total order.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/event.hpp"
#include "kernel/large_array.hpp"
#include "kernel/timing_wheel.hpp"

namespace apenet {

// Three sorts, by what a slot holds: few events are sorted by counting, events of one time by their order
// words, others by the first digits of their times. All of them avoid branches that depend on the data, and
// move each event, 40 bytes, once. The arrays are kept from one sort to the next.
class BatchSort {
 public:
  // Writes the slot's events to `sorted` in their order. False when too many of their times coincide for a
  // sort by digits: the slot must be spread first. Never false at level 0.
  bool sort(const TimingWheel& wheel, TimingWheel::Place place, Event* sorted);

 private:
  struct OrderKey {
    std::uint64_t order = 0;
    const Event* event = nullptr;
  };

  void sort_by_order(const TimingWheel& wheel, TimingWheel::Place place, Event* sorted);
  bool sort_by_digits(const TimingWheel& wheel, TimingWheel::Place place, Event* sorted);
  void take_in_order(const TimingWheel::Slot& slot, unsigned number_bits, unsigned unsure_bits,
                     Event* sorted);

  LargeArray<OrderKey> order_keys_;
  LargeArray<OrderKey> sorted_order_keys_;
  std::vector<std::uint32_t> digit_ends_;
  LargeArray<std::uint64_t> slot_keys_;   // in the order of the slot
  LargeArray<std::uint64_t> digit_keys_;  // in the order of their digits
  LargeArray<std::uint32_t> misplaced_;   // positions whose event may belong before an earlier one
  std::vector<const TimingWheel::Chunk*> chunks_;
};

}  // namespace apenet
