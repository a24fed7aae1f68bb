#include "runtime/launch/core_choice.hpp"

#include <algorithm>

namespace apenet {
namespace {

using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

// What a wake across cores costs more than one on the same core: the first of a round, because it and the
// last rank's report wake a core that may sleep; and each further one.
constexpr Seconds first_wake = 50us;
constexpr Seconds further_wake = 4us;

// Least saving, as a share of the time passed, for which it pays to use several cores, and to stay there.
constexpr double share_to_spread = 0.1;
constexpr double share_to_stay = 0.03;

constexpr std::chrono::nanoseconds proves_right = 1s;  // on several cores
constexpr std::chrono::nanoseconds first_patience = 100ms;
constexpr std::chrono::nanoseconds most_patience = 3s;

Seconds cost_of_wakes(const RoundsTaken& taken) {
  const std::uint64_t further = taken.wakes - std::min(taken.wakes, taken.rounds);
  return first_wake * static_cast<double>(taken.rounds) + further_wake * static_cast<double>(further);
}

// What several cores save compared with one. `ran` was measured with `spread`.
Seconds saving(CoreChoice::Spread spread, const RoundsTaken& taken, double runnable, unsigned cores) {
  const double side_by_side = std::clamp(runnable, 1.0, static_cast<double>(cores));
  const Seconds ran = taken.ran;
  const Seconds wakes = cost_of_wakes(taken);
  if (spread == CoreChoice::Spread::one_core) return ran * (1 - 1 / side_by_side) - wakes;
  return std::max(ran - wakes, Seconds(0)) * (side_by_side - 1) - wakes;
}

}  // namespace

bool CoreChoice::may_change(const RoundsTaken& taken, unsigned cores) const {
  if (spread_ == Spread::several_cores) return true;
  return saving(spread_, taken, cores, cores) > share_to_spread * taken.passed;
}

CoreChoice::Spread CoreChoice::decide(const RoundsTaken& taken, double runnable, unsigned cores) {
  stayed_ += taken.passed;
  const Seconds saved = saving(spread_, taken, runnable, cores);
  if (spread_ == Spread::one_core) {
    if (stayed_ < patience_ || saved <= share_to_spread * taken.passed) return spread_;
    spread_ = Spread::several_cores;
  } else {
    if (stayed_ >= proves_right) patience_ = 0ns;
    if (saved > share_to_stay * taken.passed) return spread_;
    spread_ = Spread::one_core;
    patience_ = std::clamp(2 * patience_, first_patience, most_patience);
  }
  stayed_ = 0ns;
  return spread_;
}

}  // namespace apenet
