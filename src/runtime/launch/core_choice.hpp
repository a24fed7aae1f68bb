// CoreChoice: decides from what a run has done lately whether it should use one core or several.
#pragma once

#include <chrono>
#include <cstdint>

namespace apenet {

// What the ranks of a run did during a span of wall time. A round begins when the simulator wakes ranks, and
// ends when all of them wait again.
struct RoundsTaken {
  std::chrono::nanoseconds passed{0};  // the span
  std::chrono::nanoseconds ran{0};     // the part of it during which a round was under way
  std::uint64_t rounds = 0;
  std::uint64_t wakes = 0;  // ranks woken in all of the rounds
};

// Compares the wall time that the rounds take on one core with that on `cores` cores, where the ranks of a
// round run side by side but each wake crosses cores. The caller measures how many ranks of a round want to
// run at the same time. After a change that did not pay, waits longer before each next one.
class CoreChoice {
 public:
  enum class Spread : std::uint8_t { one_core, several_cores };

  [[nodiscard]] Spread spread() const { return spread_; }
  // Whether decide() may change the spread: false spares the caller the measurement of `runnable`.
  [[nodiscard]] bool may_change(const RoundsTaken& taken, unsigned cores) const;
  // Returns the spread for the time to come. runnable: the mean number of threads of the ranks that ran or
  // waited for a processor, while a round was under way. Other load on the host leaves it as it is.
  Spread decide(const RoundsTaken& taken, double runnable, unsigned cores);

 private:
  Spread spread_ = Spread::one_core;
  std::chrono::nanoseconds stayed_{0};    // since the last change
  std::chrono::nanoseconds patience_{0};  // on one core, before the next change
};

}  // namespace apenet
