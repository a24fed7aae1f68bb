// How a description is refused: the key as in the machine files, its value and what was expected.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"

namespace apenet {

[[noreturn]] inline void refuse_value(const std::string& key, const std::string& value,
                                      const std::string& expected) {
  throw std::invalid_argument(key + " = " + value + ": expected " + expected);
}

inline void require_at_least(const std::string& key, std::int64_t value, std::int64_t least) {
  if (value < least) refuse_value(key, std::to_string(value), std::to_string(least) + " or more");
}

inline void require_at_most(const std::string& key, std::int64_t value, std::int64_t most,
                            const std::string& reason = "") {
  if (value > most) refuse_value(key, std::to_string(value), "at most " + std::to_string(most) + reason);
}

inline void require_positive_time(const std::string& key, Time value, const std::string& reason) {
  if (value <= Time::zero())
    refuse_value(key, std::to_string(value.ps()) + " ps", "more than zero: " + reason);
}

inline void require_duration(const std::string& key, Time value) {
  if (value < Time::zero()) refuse_value(key, std::to_string(value.ps()) + " ps", "zero or more");
}

inline void require_clock(const std::string& key, ClockDomain clock) {
  if (clock.frequency_hz <= 0)
    refuse_value(key, std::to_string(clock.frequency_hz) + " Hz", "more than zero");
}

}  // namespace apenet
