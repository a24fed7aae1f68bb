#include "kernel/batch_sort.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <span>
#include <utility>

namespace apenet {

namespace {

constexpr std::size_t few = 16;          // up to here: sorted by counting
constexpr std::size_t many_alike = 256;  // entries with one digit: a sort by digits does not pay

// Sorts up to `few` events: the position of each is the number of events before it. It compares all pairs,
// but none of the comparisons is a branch; half of those would be mispredicted.
void sort_few(const Event* events, std::size_t count, Event* sorted) {
  std::array<std::uint8_t, few> position{};
  for (std::size_t i = 1; i < count; ++i) {
    std::uint8_t before = 0;
    for (std::size_t j = 0; j < i; ++j) {
      const auto is_later = static_cast<std::uint8_t>(events[i].before(events[j]));
      position[j] = static_cast<std::uint8_t>(position[j] + is_later);
      before = static_cast<std::uint8_t>(before + 1 - is_later);
    }
    position[i] = before;
  }
  for (std::size_t i = 0; i < count; ++i) sorted[position[i]] = events[i];
}

// Brings nearly sorted keys closer to their order: a key may move a few places. Neighbours are exchanged with
// a mask, since a branch would be mispredicted half of the time.
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

// Moves the last event back to its place among those before it, which are in order.
void insert_last(Event* events, std::size_t last) {
  const Event event = events[last];
  std::size_t position = last;
  for (; position > 0 && event.before(events[position - 1]); --position)
    events[position] = events[position - 1];
  events[position] = event;
}

}  // namespace

bool BatchSort::sort(const TimingWheel& wheel, TimingWheel::Place place, Event* sorted) {
  const TimingWheel::Slot& slot = wheel.slot_at(place);
  if (slot.count <= few) {
    sort_few(slot.first->events.data(), static_cast<std::size_t>(slot.count), sorted);
    return true;
  }
  if (place.level > 0) return sort_by_digits(wheel, place, sorted);
  sort_by_order(wheel, place, sorted);
  return true;
}

// Level 0: all events have one time. Components that act in step have often scheduled them in the order of
// their sources already. Where they have not, the machine is large and its events do not fit the cache: the
// order words are sorted digit by digit from the lowest, without the digits in which none differ.
void BatchSort::sort_by_order(const TimingWheel& wheel, TimingWheel::Place place, Event* sorted) {
  constexpr std::uint64_t most_digits = 4096;  // their counts fit the first-level cache
  constexpr std::size_t least_by_digits = 256;
  const auto comes_before = [](const OrderKey& left, const OrderKey& right) {
    return left.order < right.order;
  };
  const TimingWheel::Slot& slot = wheel.slot_at(place);
  if (order_keys_.size() < slot.count) {  // they never shrink: to grow again would clear them
    order_keys_.resize(slot.count);
    sorted_order_keys_.resize(slot.count);
  }
  std::span<OrderKey> keys(order_keys_.data(), slot.count);
  std::span<OrderKey> sorted_keys(sorted_order_keys_.data(), slot.count);
  auto next = keys.begin();
  std::uint64_t before = slot.first->events.front().order;
  std::uint64_t differing = 0;
  bool is_sorted = true;
  wheel.visit(place, [&](const Event& event) {
    differing |= event.order ^ before;
    is_sorted &= event.order >= before;
    before = event.order;
    *next++ = {event.order, &event};
  });
  if (!is_sorted && keys.size() < least_by_digits) {
    std::sort(keys.begin(), keys.end(), comes_before);
    is_sorted = true;
  }
  if (is_sorted) differing = 0;
  while (differing != 0) {
    const auto shift = static_cast<unsigned>(std::countr_zero(differing));
    // As wide as the bits that differ: a machine of 4096 nodes needs one digit, a small one few counts.
    const std::uint64_t mask = std::bit_ceil((differing >> shift) % most_digits + 1) - 1;
    differing &= ~(mask << shift);
    const auto digit_of = [=](const OrderKey& key) {
      return static_cast<std::size_t>((key.order >> shift) & mask);
    };
    digit_ends_.assign(mask + 1, 0);  // counts at first
    for (const OrderKey& key : keys) ++digit_ends_[digit_of(key)];
    std::exclusive_scan(digit_ends_.begin(), digit_ends_.end(), digit_ends_.begin(), 0U);
    for (const OrderKey& key : keys) sorted_keys[digit_ends_[digit_of(key)]++] = key;
    std::swap(keys, sorted_keys);
  }
  for (const OrderKey& key : keys) *sorted++ = *key.event;
}

// Sorts by the leading digits of the times, as many as make most events differ. A key is time, kind, source
// and the event's number in the slot.
bool BatchSort::sort_by_digits(const TimingWheel& wheel, TimingWheel::Place place, Event* sorted) {
  const TimingWheel::Slot& slot = wheel.slot_at(place);
  const std::uint64_t earliest_ps = slot.earliest_ps;
  const auto range_bits = static_cast<unsigned>(std::bit_width(slot.latest_ps - earliest_ps));
  const auto number_bits = static_cast<unsigned>(std::bit_width(slot.count - 1));
  const unsigned below_time = PackedOrder::kind_bits + PackedOrder::source_bits + number_bits;
  const unsigned omitted_bits = std::max(range_bits + below_time, 64U) - 64;  // for times seconds apart
  const unsigned bits = std::min(range_bits, static_cast<unsigned>(std::bit_width(slot.count)));
  const unsigned shift = below_time + range_bits - omitted_bits - bits;
  digit_ends_.assign(std::size_t{1} << bits, 0);
  slot_keys_.resize(slot.count);
  std::uint64_t number = 0;
  wheel.visit(place, [&](const Event& event) {
    const std::uint64_t key = (event.time_ps - earliest_ps) >> omitted_bits << below_time |
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
  // With bits of the times omitted, only the time of a key decides.
  take_in_order(slot, number_bits, omitted_bits == 0 ? number_bits : below_time, sorted);
  return true;
}

// Writes the events in the order of digit_keys_, then moves back those that may precede an earlier one: keys
// that sort_neighbours did not reach, and keys that are equal above their lowest `unsure_bits`.
void BatchSort::take_in_order(const TimingWheel::Slot& slot, unsigned number_bits, unsigned unsure_bits,
                              Event* sorted) {
  chunks_.clear();
  for (const TimingWheel::Chunk* chunk = slot.first; chunk != nullptr; chunk = chunk->next)
    chunks_.push_back(chunk);
  const std::uint64_t number_mask = (std::uint64_t{1} << number_bits) - 1;
  std::uint64_t highest = 0;
  std::uint32_t count = 0;
  misplaced_.resize(slot.count);
  std::size_t misplaced_count = 0;
  for (const std::uint64_t key : digit_keys_) {
    const std::uint64_t number = key & number_mask;
    sorted[count] = chunks_[number / TimingWheel::chunk_capacity]
                        ->events[static_cast<std::size_t>(number % TimingWheel::chunk_capacity)];
    // Listed here and moved below: a branch would be mispredicted for every misplaced event.
    misplaced_[misplaced_count] = count++;
    misplaced_count += static_cast<std::size_t>(key >> unsure_bits <= highest);
    highest = std::max(highest, key >> unsure_bits);
  }
  for (std::size_t i = 0; i < misplaced_count; ++i) insert_last(sorted, misplaced_[i]);
}

}  // namespace apenet
