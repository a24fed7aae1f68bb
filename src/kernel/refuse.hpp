// The error for an unusable value, `KEY = VALUE: expected WHAT`, and checks that throw it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "kernel/one_line.hpp"
#include "kernel/time.hpp"

namespace apenet {

// These checks take views, because they run for every descriptor: a valid value must not cost a string.
[[noreturn]] inline void refuse_value(std::string_view key, std::string_view value,
                                      std::string_view expected) {
  std::string text(key);
  text.append(" = ").append(value).append(": expected ").append(expected);
  throw std::invalid_argument(text);
}

// Text of the user's for a message: quoted, on one line, shortened, without control characters.
[[nodiscard]] inline std::string quoted(std::string_view text, std::size_t most) {
  return '"' + one_line(text.substr(0, most)) + (text.size() > most ? "...\"" : "\"");
}

// Runs what refuses values, and completes their keys: `section` comes before them.
template <typename Checks>
void refuse_within(const std::string& section, const Checks& checks) {
  try {
    checks();
  } catch (const std::invalid_argument& refused) {
    throw std::invalid_argument(section + '.' + refused.what());
  }
}

inline void require_at_least(std::string_view key, std::int64_t value, std::int64_t least) {
  if (value < least) refuse_value(key, std::to_string(value), std::to_string(least) + " or more");
}

inline void require_at_most(std::string_view key, std::int64_t value, std::int64_t most,
                            std::string_view reason = "") {
  if (value > most) {
    refuse_value(key, std::to_string(value), ("at most " + std::to_string(most)).append(reason));
  }
}

inline void require_positive_time(std::string_view key, Time value, std::string_view reason) {
  if (value <= Time::zero()) {
    refuse_value(key, std::to_string(value.ps()) + " ps", std::string("more than zero: ").append(reason));
  }
}

inline void require_duration(std::string_view key, Time value) {
  if (value < Time::zero()) refuse_value(key, std::to_string(value.ps()) + " ps", "zero or more");
}

}  // namespace apenet
