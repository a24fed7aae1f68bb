// The report of a deadlock: what each rank waits in, and why none can continue.
#pragma once

#include <string>
#include <vector>

#include "runtime/scheduler/rank_snapshot.hpp"

namespace apenet {

// Returns indented lines. First the call in which each rank waits, in rank order, with equal ones merged;
// then the certain conclusions: ranks that wait for themselves, for a finished rank or in a cycle, and
// collectives that not all ranks of the communicator have entered.
[[nodiscard]] std::string deadlock_report(const std::vector<RankSnapshot>& ranks);

}  // namespace apenet
