// Changes each field of a component's state, one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <ranges>
#include <type_traits>

#include "kernel/simulation.hpp"
#include "kernel/state.hpp"

namespace apenet::test {

enum class Seen : std::uint8_t { always, perhaps, never };  // whether a change makes another state

// Whether a struct packs its fields into the bits of a word without saying so by operator==.
template <typename T>
inline constexpr bool is_packed = false;
template <typename T>
inline constexpr bool is_word = is_packed<T> || (std::is_class_v<T> && state_kinds::Value<T>);

using Check = std::function<void(Seen)>;

// One item in every container, so that it has fields to change. Elements of arrays are left.
template <typename T>
void fill(T& value) {
  if constexpr (state_kinds::Value<T> || std::is_same_v<T, Time> || state_kinds::is_numbering<T> ||
                is_word<T>) {
  } else if constexpr (std::is_aggregate_v<T> && !std::ranges::range<T>) {
    for_each_field(value, [](auto& field) { fill(field); });
  } else if constexpr (std::ranges::range<T>) {
    if constexpr (requires { value.emplace_back(); }) {
      value.emplace_back();
    } else if constexpr (requires { value.try_emplace(typename T::key_type{}); }) {
      value.try_emplace(typename T::key_type{});
    } else if constexpr (requires { value.insert(typename T::key_type{}); }) {
      value.insert(typename T::key_type{});
    }
    for (auto& item : value) {
      using Item = std::remove_reference_t<decltype(item)>;
      if constexpr (state_kinds::Pair<std::remove_cv_t<Item>>) {
        fill(item.second);
      } else if constexpr (!std::is_const_v<Item>) {
        fill(item);
      }
    }
  }
}

// Calls check after each change, then takes the change back. `seen`: what the fields around it say.
template <typename T>
void change_each(T& value, const Check& check, Seen seen = Seen::always) {
  const auto change = [&](const T& other, Seen expected) {
    const T before = value;
    value = other;
    check(expected);
    value = before;
  };
  if constexpr (std::is_same_v<T, EventSource>) {
    change({value.kind == EventKind::nic ? EventKind::host : EventKind::nic, value.id, value.counter}, seen);
    change({value.kind, value.id + 1, value.counter}, seen);
    change({value.kind, value.id, value.counter + 1}, Seen::never);
  } else if constexpr (is_word<T>) {
    std::array<std::byte, sizeof(T)> bytes;
    for (std::size_t bit = 0; bit < 8 * sizeof(T); ++bit) {
      std::memcpy(bytes.data(), &value, sizeof(T));
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
      T other;
      std::memcpy(&other, bytes.data(), sizeof(T));
      change(other, seen);
    }
  } else if constexpr (state_kinds::HasOwnEquality<T> && std::is_aggregate_v<T>) {
    for_each_field(value, [&](auto& field) { change_each(field, check, Seen::perhaps); });
  } else if constexpr (requires { value.in_use(); }) {
    T other = value;
    other.add({});
    change(other, seen);
  } else if constexpr (state_kinds::HasOwnEquality<T>) {
    // A QueuePool: what is under way is in its queues.
  } else if constexpr (std::is_same_v<T, bool>) {
    change(!value, seen);
  } else if constexpr (std::is_enum_v<T>) {
    change(static_cast<T>(static_cast<std::underlying_type_t<T>>(value) + 1), seen);
  } else if constexpr (std::is_pointer_v<T>) {
    static std::uint64_t object = 0;
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    change(reinterpret_cast<T>(reinterpret_cast<std::uintptr_t>(&object)), seen);
  } else if constexpr (std::is_arithmetic_v<T>) {
    change(static_cast<T>(value + 1), seen);
  } else if constexpr (std::is_same_v<T, Time>) {
    change(Time::from_ps(1'000'000'000), seen);  // after the moment of the comparison
    change(Time::never(), value == Time::never() ? Seen::never : seen);
  } else if constexpr (state_kinds::is_numbering<T>) {
    change(T{static_cast<decltype(value.value)>(value.value + 1)}, Seen::never);
  } else if constexpr (std::ranges::range<T>) {
    for (auto& item : value) {
      using Item = std::remove_reference_t<decltype(item)>;
      if constexpr (state_kinds::Pair<std::remove_cv_t<Item>>) {
        change_each(item.second, check, seen);
      } else if constexpr (!std::is_const_v<Item>) {
        change_each(item, check, seen);
      }
    }
    if constexpr (requires(T copy) { copy.clear(); }) {
      T none = value;
      none.clear();
      if (!std::ranges::empty(value)) change(none, seen);
    }
  } else {
    for_each_field(value, [&](auto& field) { change_each(field, check, seen); });
  }
}

}  // namespace apenet::test
