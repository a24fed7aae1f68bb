// Estimates the CPU time that a thread computes between its calls, for runs that charge none.
#pragma once

#include <cstdint>

namespace apenet::shim {

// One per thread. A read of the CPU clock is a system call, so of eight regions one is measured and counts
// eight times. A region that the cycle counter finds long is always measured, and counts once. No result may
// depend on it.
class UnchargedComputation {
 public:
  // The thread computes from now on. cpu_ps: reads its CPU clock.
  template <typename ReadCpu>
  void begin(ReadCpu cpu_ps) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;  // Knuth's generator for MMIX
    is_sampled_ = !has_begun_ || (state_ >> 32) % sampled_of == 0;
    has_begun_ = true;
    if (is_sampled_) cpu_ps_ = cpu_ps();
    ticks_ = ticks();
  }
  // The thread has computed until now. Returns the estimate for this region, in picoseconds. If a long region
  // was not sampled, it includes the calls since the last read of the clock, which take far less time.
  template <typename ReadCpu>
  std::int64_t end(ReadCpu cpu_ps) {
    if (!has_begun_) return 0;
    const bool is_long = ticks() - ticks_ >= long_ticks;
    if (!is_sampled_ && !is_long) return 0;
    const std::int64_t before_ps = cpu_ps_;
    cpu_ps_ = cpu_ps();
    return (cpu_ps_ - before_ps) * (is_long ? 1 : sampled_of);
  }

 private:
  static constexpr std::uint64_t long_ticks = 1 << 20;  // a third of a millisecond at 3 GHz
#if defined(__x86_64__)
  static constexpr std::int64_t sampled_of = 8;
  static std::uint64_t ticks() {
    return __builtin_ia32_rdtsc();
  }
#else
  static constexpr std::int64_t sampled_of = 1;
  static std::uint64_t ticks() {
    return 0;
  }
#endif

  std::uint64_t state_ = 1;
  std::uint64_t ticks_ = 0;
  std::int64_t cpu_ps_ = 0;
  bool is_sampled_ = false;
  bool has_begun_ = false;
};

}  // namespace apenet::shim
