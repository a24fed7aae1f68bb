// DelayLine: entries in flight on wires of fixed delay, sorted by the cycle in which they arrive.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernel/check.hpp"
#include "kernel/state.hpp"

namespace apenet {

using FlitCycle = std::int64_t;

// One delay line holds all wires of a network that carry the same kind of entry. Each reader has a list,
// which is a ring of slots: a slot holds what arrives in one cycle, in the order of sending. Every delay is
// at least one cycle. This makes the routers a Moore machine: a router cannot see in a cycle what another one
// sends in that cycle.
//
// The invariant that makes it fast: equal-delay wires to the same list share a slot in every cycle.
// begin_cycle() finds the few slots once per cycle, and a push appends to one of them.
template <typename Entry>
class alignas(64) DelayLine {
 public:
  // Supports delays of 1 to max_delay cycles.
  DelayLine(FlitCycle max_delay, std::size_t lists)
      : max_delay_(max_delay),
        mask_(std::bit_ceil(static_cast<std::size_t>(max_delay) + 2) - 1),
        wires_to_(lists),
        state_{.cycle = 0, .slots = std::vector<Slot>((mask_ + 1) * lists), .used_slots = 0} {}

  // Returns the number that stands for all wires to `list` with this delay.
  [[nodiscard]] std::uint32_t wire(std::size_t list, FlitCycle delay) {
    APENET_CHECK(delay > 0 && delay <= max_delay_, "a wire of %lld cycles, at most %lld",
                 static_cast<long long>(delay), static_cast<long long>(max_delay_));
    for (const std::uint32_t number : wires_to_[list]) {
      if (wires_[number].delay == delay) return number;
    }
    const auto number = static_cast<std::uint32_t>(wires_.size());
    wires_to_[list].push_back(number);
    wires_.push_back({list, delay});
    ends_.push_back(nullptr);
    return number;
  }
  [[nodiscard]] FlitCycle delay(std::uint32_t wire) const { return wires_[wire].delay; }

  // Entries pushed from now on are sent in `cycle`.
  void begin_cycle(FlitCycle cycle) {
    state_.cycle = cycle;
    for (std::size_t i = 0; i < wires_.size(); ++i) {
      ends_[i] = &slot_of(cycle + wires_[i].delay, wires_[i].list);
    }
  }
  void push(std::uint32_t wire, const Entry& entry) { add(*ends_[wire], entry); }
  // Delays the entry by `later` cycles more than the wire does; `later` may be negative. The sum must be 1 to
  // max_delay.
  void push_late(std::uint32_t wire, FlitCycle later, const Entry& entry) {
    push_at(wire, arrival_of(wire, later), entry);
  }

  // The cycle in which an entry arrives that is pushed now, `later` cycles late.
  [[nodiscard]] FlitCycle arrival_of(std::uint32_t wire, FlitCycle later) const {
    return state_.cycle + wires_[wire].delay + later;
  }
  // Whether push_at() can be called for this cycle.
  [[nodiscard]] bool reaches(FlitCycle arrival) const { return arrival - state_.cycle <= max_delay_; }
  // Pushes an entry that arrives in a cycle after the present one.
  void push_at(std::uint32_t wire, FlitCycle arrival, const Entry& entry) {
    add(slot_of(arrival, wires_[wire].list), entry);
  }
  // Drops all entries.
  void clear() {
    for (Slot& slot : state_.slots) {
      if (slot.limit == nullptr) continue;
      slot.end = slot.entries.get();
      spare_.push_back(std::exchange(slot, {}));
    }
    state_.used_slots = 0;
  }

  // Removes and visits the entries of `list` that arrive in `cycle`, in the order of sending. visit may push
  // to later cycles. Returns whether there were any entries.
  template <typename Visit>
  bool take(FlitCycle cycle, std::size_t list, Visit visit) {
    Slot& slot = slot_of(cycle, list);
    const Entry* const end = slot.end;
    if (slot.entries.get() == end) return false;
    for (const Entry* entry = slot.entries.get(); entry != end; ++entry) visit(*entry);
    APENET_CHECK(slot.end == end, "%td entries sent with a delay beyond the line", slot.end - end);
    --state_.used_slots;
    slot.end = slot.entries.get();
    spare_.push_back(std::exchange(slot, {}));
    return true;
  }
  [[nodiscard]] bool empty() const { return state_.used_slots == 0; }

  struct alignas(32) Slot {
    std::unique_ptr<Entry[]> entries;
    Entry* end = nullptr;    // end of the entries
    Entry* limit = nullptr;  // end of the space for entries

    Slot() = default;
    explicit Slot(std::size_t room)
        : entries(std::make_unique<Entry[]>(room)), end(entries.get()), limit(end + room) {}
    Slot(const Slot& other) : Slot() {
      if (other.limit == nullptr) return;
      *this = Slot(static_cast<std::size_t>(other.limit - other.entries.get()));
      end = std::copy_n(other.entries.get(), other.count(), end);
    }
    Slot(Slot&&) noexcept = default;
    Slot& operator=(Slot other) noexcept {
      entries.swap(other.entries);
      end = other.end;
      limit = other.limit;
      return *this;
    }
    ~Slot() = default;
    [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(end - entries.get()); }
    friend bool is_same_state(const Slot& left, Moment left_at, const Slot& right, Moment right_at) {
      return std::equal(left.entries.get(), left.entries.get() + left.count(), right.entries.get(),
                        right.entries.get() + right.count(), [&](const Entry& one, const Entry& other) {
                          return equal_up_to_shift(one, left_at, other, right_at);
                        });
    }
  };
  struct State {
    FlitCycle cycle = 0;         // in which push() sends
    std::vector<Slot> slots;     // the ring of each list, one after the other
    std::size_t used_slots = 0;  // slots with entries; only these have a buffer
  };

 private:
  struct Wire {
    std::size_t list = 0;
    FlitCycle delay = 0;
  };

  void add(Slot& slot, const Entry& entry) {
    if (slot.end == slot.limit) [[unlikely]]
      grow(slot);
    *slot.end++ = entry;
  }

  // Reuses the buffer that was read last, because it is in the cache. Most slots are empty at any time, so
  // that few buffers are in use.
  [[gnu::noinline]] void grow(Slot& slot) {
    if (slot.limit == nullptr) ++state_.used_slots;
    if (slot.limit == nullptr && !spare_.empty()) {
      slot = std::move(spare_.back());
      spare_.pop_back();
      return;
    }
    const std::size_t count = slot.count();
    const std::size_t room = std::max<std::size_t>(8, 2 * count);
    Slot larger(room);
    larger.end = std::copy_n(slot.entries.get(), count, larger.end);
    slot = std::move(larger);
  }

  [[nodiscard]] Slot& slot_of(FlitCycle cycle, std::size_t list) {
    return state_.slots[list * (mask_ + 1) + (static_cast<std::size_t>(cycle) & mask_)];
  }

  const FlitCycle max_delay_;
  const std::size_t mask_;
  std::vector<Slot*> ends_;                           // per wire: the slot of what push() sends in this cycle
  std::vector<Wire> wires_;                           // by number
  std::vector<std::vector<std::uint32_t>> wires_to_;  // per list: numbers of wires
  std::vector<Slot> spare_;                           // empty buffers; the last was read last
  State state_;
};

}  // namespace apenet
