// RankCpu: a CPU of a scripted rank. It works ahead of the simulation until the rank waits.
#pragma once

#include <algorithm>
#include <utility>

#include "kernel/time.hpp"

namespace apenet {

struct RankCpu {
  Time clock;
  Time deferred_cost;  // charged when the rank next polls for events

  void charge(Time span) { clock += span; }
  void advance(Time to) { clock = std::max(clock, to); }
  void charge_deferred() { clock += std::exchange(deferred_cost, Time::zero()); }
};

}  // namespace apenet
