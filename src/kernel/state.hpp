// State: what two states of a component at different times have in common.
//
// A component keeps what it is configured with, what affects its future, and what it only counts in separate
// structs of plain data: Spec, State and Counters. Everything here is derived from the fields of these
// structs, so that a new field takes part at once. A type that none of this covers does not compile.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ranges>
#include <type_traits>
#include <vector>

#include "kernel/plain_data.hpp"
#include "kernel/time.hpp"

namespace apenet {

// The time at which a state is seen.
struct Moment {
  Time now;
  Time reach = Time::zero();  // a time at least this far back is past

  [[nodiscard]] bool is_past(Time time) const { return time <= now - reach; }
};

// A number that names what is under way, or orders it. Only differences between such numbers matter, so that
// two states in which nothing is under way do not differ by them.
template <std::unsigned_integral Word>
struct Numbering {
  Word value = 0;

  constexpr operator Word() const { return value; }
  constexpr Numbering& operator++() {
    ++value;
    return *this;
  }
};

namespace state_kinds {

template <typename T>
concept HasOwnEquality = requires(const T& value, Moment at) {
  { is_same_state(value, at, value, at) } -> std::same_as<bool>;
};

template <typename T>
inline constexpr bool is_numbering = false;
template <typename Word>
inline constexpr bool is_numbering<Numbering<Word>> = true;

template <typename T>
concept Value = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_pointer_v<T> ||
    (!std::is_aggregate_v<T> && !std::ranges::range<T> && !std::is_same_v<T, Time> &&
     std::equality_comparable<T> && sizeof(T) <= sizeof(std::uint64_t));

template <typename T>
concept Pair = requires(T pair) {
  pair.first;
  pair.second;
}
&&!std::is_aggregate_v<T>;

}  // namespace state_kinds

// Whether the component does the same from now on, up to the shift in time: times lie as far from now or are
// past, values are equal. A type with another rule declares beside itself
// `bool is_same_state(const T&, Moment, const T&, Moment)`; it may be more strict, never less.
template <typename T>
[[nodiscard]] bool equal_up_to_shift(const T& left, Moment left_at, const T& right, Moment right_at) {
  const auto recurse = [&](const auto& a, const auto& b) {
    return equal_up_to_shift(a, left_at, b, right_at);
  };
  if constexpr (state_kinds::HasOwnEquality<T>) {
    return is_same_state(left, left_at, right, right_at);
  } else if constexpr (std::is_same_v<T, Time>) {
    if (left_at.is_past(left)) return right_at.is_past(right);
    if (left == Time::never() || right == Time::never()) return left == right;
    return left - left_at.now == right - right_at.now;
  } else if constexpr (state_kinds::is_numbering<T>) {
    return true;
  } else if constexpr (state_kinds::Value<T>) {
    return left == right;
  } else if constexpr (std::ranges::range<const T>) {
    return std::ranges::equal(left, right, recurse);
  } else if constexpr (state_kinds::Pair<T>) {
    return recurse(left.first, right.first) && recurse(left.second, right.second);
  } else {
    return all_fields(recurse, left, right);
  }
}

// Whether all times are past, and nothing is under way.
template <typename T>
[[nodiscard]] bool is_quiescent_state(const T& value, Moment at) {
  const auto recurse = [&](const auto& part) { return is_quiescent_state(part, at); };
  if constexpr (state_kinds::HasOwnEquality<T>) {
    return is_same_state(value, at, value, at);
  } else if constexpr (std::is_same_v<T, Time>) {
    return at.is_past(value) || value == Time::never();
  } else if constexpr (state_kinds::is_numbering<T> || state_kinds::Value<T>) {
    return true;
  } else if constexpr (std::ranges::range<const T>) {
    return std::ranges::all_of(value, recurse);
  } else if constexpr (state_kinds::Pair<T>) {
    return recurse(value.first) && recurse(value.second);
  } else {
    return all_fields(recurse, value);
  }
}

// Gives `state` the values of `after`, which came of a state equal up to the shift in time. Both are
// quiescent: all times are past, and nothing is under way.
template <typename T>
void take_quiescent_values(T& state, const T& after) {
  if constexpr (state_kinds::HasOwnEquality<T> || std::is_same_v<T, Time> || state_kinds::is_numbering<T>) {
  } else if constexpr (state_kinds::Value<T>) {
    state = after;
  } else if constexpr (std::ranges::range<const T>) {
    auto from = std::ranges::begin(after);
    for (auto& item : state) take_quiescent_values(item, *from++);
  } else {
    all_fields(
        [](auto& field, const auto& value) {
          take_quiescent_values(field, value);
          return true;
        },
        state, after);
  }
}

// Adds to each counter what it grew by between `before` and `after`.
template <typename Counters>
void add_difference(Counters& counters, const Counters& before, const Counters& after) {
  all_fields(
      [](auto& counter, const auto& from, const auto& to) {
        using T = std::remove_cvref_t<decltype(counter)>;
        static_assert(std::unsigned_integral<T> || std::is_same_v<T, Time>, "a counter only grows");
        counter += to - from;
        return true;
      },
      counters, before, after);
}

// The states and counters of some components: to compare, to copy, and to move on together. They must stay
// where they are.
class StateList {
 public:
  template <typename State>
  void state(State& state) {
    add(state, operations_of_state<State>);
  }
  template <typename Counters>
  void counters(Counters& counters) {
    add(counters, operations_of_counters<Counters>);
  }
  // See Moment::reach. The longest of all components counts.
  void reach(Time time) { reach_ = std::max(reach_, time); }
  [[nodiscard]] Time reach() const { return reach_; }

  // A copy of all of them, and its time.
  struct Checkpoint {
    std::vector<std::byte> bytes;
    Time now;
  };
  [[nodiscard]] Checkpoint checkpoint(Time now) const {
    Checkpoint copy{std::vector<std::byte>(bytes_), now};
    for (const Part& part : parts_)
      std::memcpy(copy.bytes.data() + part.offset, part.at, part.operations->bytes);
    return copy;
  }
  void restore(const Checkpoint& from) const {
    for (const Part& part : parts_)
      std::memcpy(part.at, from.bytes.data() + part.offset, part.operations->bytes);
  }
  // Whether all times are past, and nothing is under way.
  [[nodiscard]] bool is_quiescent(Time now) const {
    const Moment here{now, reach_};
    return std::ranges::all_of(parts_, [&](const Part& part) {
      return part.operations->quiescent == nullptr || part.operations->quiescent(part.at, here);
    });
  }
  // Whether all states are at `now` as in the checkpoint, up to the shift in time. Counters do not count.
  [[nodiscard]] bool equals(const Checkpoint& then, Time now) const {
    const Moment here{now, reach_};
    const Moment there{then.now, reach_};
    return std::ranges::all_of(parts_, [&](const Part& part) {
      return part.operations->equal == nullptr ||
             part.operations->equal(part.at, here, then.bytes.data() + part.offset, there);
    });
  }
  // Repeats the changes between two checkpoints. Requires equals(before), and that all is quiescent in both.
  void repeat(const Checkpoint& before, const Checkpoint& after) const {
    for (const Part& part : parts_)
      part.operations->repeat(part.at, before.bytes.data() + part.offset, after.bytes.data() + part.offset);
  }

 private:
  struct Operations {
    std::size_t bytes;
    bool (*quiescent)(const void* state, Moment at);  // the next two:
    bool (*equal)(const void* state, Moment at, const std::byte* other,
                  Moment other_at);  // compares two states
    void (*repeat)(void* part, const std::byte* before, const std::byte* after);
  };
  struct Part {
    void* at;
    std::size_t offset;
    const Operations* operations;
  };

  template <typename T>
  static T copy_of(const std::byte* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof(T));
    return value;
  }
  template <typename State>
  static constexpr Operations operations_of_state = {
      sizeof(State),
      [](const void* state, Moment at) { return is_quiescent_state(*static_cast<const State*>(state), at); },
      [](const void* state, Moment at, const std::byte* other, Moment other_at) {
        return equal_up_to_shift(*static_cast<const State*>(state), at, copy_of<State>(other), other_at);
      },
      [](void* state, const std::byte* /*before*/, const std::byte* after) {
        take_quiescent_values(*static_cast<State*>(state), copy_of<State>(after));
      }};
  template <typename Counters>
  static constexpr Operations operations_of_counters = {
      sizeof(Counters), nullptr, nullptr,
      [](void* counters, const std::byte* before, const std::byte* after) {
        add_difference(*static_cast<Counters*>(counters), copy_of<Counters>(before),
                       copy_of<Counters>(after));
      }};

  template <typename T>
  void add(T& part, const Operations& operations) {
    static_assert(std::is_trivially_copyable_v<T>);
    parts_.push_back({&part, bytes_, &operations});
    bytes_ += sizeof(T);
  }

  std::vector<Part> parts_;
  std::size_t bytes_ = 0;
  Time reach_ = Time::zero();
};

}  // namespace apenet
