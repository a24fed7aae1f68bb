// Time: the clock of a simulation, in integer picoseconds.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace apenet {

// A point or a span of simulated time. Integer picoseconds: no rounding depends on the order of operations,
// and int64 covers 106 days. A separate type, so that cycles, bytes and nanoseconds cannot be added to it by
// accident.
class Time {
 public:
  constexpr Time() = default;
  [[nodiscard]] static constexpr Time from_ps(std::int64_t ps) { return Time{ps}; }
  [[nodiscard]] static constexpr Time from_ns(std::int64_t ns) { return Time{ns * 1000}; }
  [[nodiscard]] static constexpr Time zero() { return Time{0}; }
  // Later than every event. Adding to it is an error, which the queue's checks detect.
  [[nodiscard]] static constexpr Time never() { return Time{std::numeric_limits<std::int64_t>::max()}; }

  [[nodiscard]] constexpr std::int64_t ps() const { return ps_; }
  // For reports only: floating point must not enter the timing path.
  [[nodiscard]] constexpr double to_us() const { return static_cast<double>(ps_) * 1e-6; }

  constexpr auto operator<=>(const Time&) const = default;
  // Defined explicitly: derived from <=>, GCC branches twice, on equality and then on order.
  constexpr bool operator<(Time other) const { return ps_ < other.ps_; }
  constexpr bool operator<=(Time other) const { return ps_ <= other.ps_; }
  constexpr bool operator>(Time other) const { return ps_ > other.ps_; }
  constexpr bool operator>=(Time other) const { return ps_ >= other.ps_; }
  // The sum of two times up to end_of_time is negative if it does not fit, and Simulation::schedule()
  // refuses it.
  constexpr Time operator+(Time other) const {
    return Time{
        static_cast<std::int64_t>(static_cast<std::uint64_t>(ps_) + static_cast<std::uint64_t>(other.ps_))};
  }
  constexpr Time operator-(Time other) const { return Time{ps_ - other.ps_}; }
  constexpr Time& operator+=(Time other) {
    *this = *this + other;
    return *this;
  }
  constexpr Time& operator-=(Time other) {
    ps_ -= other.ps_;
    return *this;
  }
  constexpr Time operator*(std::int64_t factor) const { return Time{ps_ * factor}; }

 private:
  explicit constexpr Time(std::int64_t ps) : ps_(ps) {}
  std::int64_t ps_ = 0;
};

// Every event of a simulation is earlier than this: 104 days.
inline constexpr Time end_of_time = Time::from_ps(9'000'000'000'000'000'000);

}  // namespace apenet
