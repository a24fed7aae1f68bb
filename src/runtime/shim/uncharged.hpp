// Estimates the CPU time that a thread computes between its calls, for runs that charge none.
#pragma once

#include <algorithm>
#include <cstdint>

namespace apenet::shim {

#if defined(__x86_64__)
inline constexpr bool has_cycle_ticks = true;
inline std::uint64_t cycle_ticks() {
  return __builtin_ia32_rdtsc();
}
#else  // each region is measured
inline constexpr bool has_cycle_ticks = false;
inline std::uint64_t cycle_ticks() {
  return 0;
}
#endif

// One per thread. A read of the CPU clock is a system call, which takes as long as a short call of MPI, so
// only a sample of the regions is measured, and each counts as often as one is drawn. The first ones are all
// measured; then, while none is long, fewer and fewer. A region that the cycle counter finds long is always
// measured, and counts once. No result may depend on it.
class UnchargedComputation {
 public:
  // The thread computes from now on. ticks: cycle_ticks(). cpu_ps: reads its CPU clock.
  template <typename ReadCpu>
  void begin(std::uint64_t ticks, ReadCpu cpu_ps) {
    if (--until_sample_ == 0) [[unlikely]] {
      is_sampled_ = true;
      cpu_ps_ = cpu_ps();
    }
    ticks_ = ticks;
  }
  // Whether the region until now is to be measured. Requires begin().
  [[nodiscard]] bool counts(std::uint64_t ticks) const { return is_sampled_ || ticks - ticks_ >= long_ticks; }
  // The thread has computed until now. Requires begin(). Returns the estimate for this region, in
  // picoseconds. If a long region was not sampled, it includes the calls since the last read of the clock,
  // which seldom take as long.
  template <typename ReadCpu>
  std::int64_t end(std::uint64_t ticks, ReadCpu cpu_ps) {
    if (!counts(ticks)) return 0;
    const bool is_long = ticks - ticks_ >= long_ticks;
    const std::int64_t before_ps = cpu_ps_;
    cpu_ps_ = cpu_ps();
    const std::int64_t weight = is_long ? 1 : interval_;
    if (is_long) restart();
    draw();
    return (cpu_ps_ - before_ps) * weight;
  }

 private:
  static constexpr std::uint64_t long_ticks = 1 << 20;  // a third of a millisecond at 3 GHz
  static constexpr std::uint32_t samples_of_interval = 128;
  // Regions for each one that is measured, in the mean.
  static constexpr std::uint32_t interval_after_long = has_cycle_ticks ? 8 : 1;
  static constexpr std::uint32_t most_interval = has_cycle_ticks ? 256 : 1;

  // A thread that computes for long is likely to do so again.
  void restart() {
    interval_ = std::min(interval_, interval_after_long);
    samples_ = 0;
  }
  // Draws the next region that is measured.
  void draw() {
    is_sampled_ = false;
    if (++samples_ > samples_of_interval && interval_ < most_interval) {
      interval_ *= 2;
      samples_ = 1;
    }
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;  // Knuth's generator for MMIX
    until_sample_ = 1 + static_cast<std::uint32_t>(state_ >> 32U) % (2 * interval_ - 1);
  }

  std::uint64_t state_ = 1;
  std::uint64_t ticks_ = 0;
  std::int64_t cpu_ps_ = 0;
  std::uint32_t until_sample_ = 1;
  std::uint32_t interval_ = 1;
  std::uint32_t samples_ = 0;  // number in this interval
  bool is_sampled_ = false;
};

}  // namespace apenet::shim
