// The report of a deadlock: what each rank is in, and why none can go on.
#pragma once

#include <string>
#include <vector>

#include "runtime/scheduler/rank_facts.hpp"

namespace apenet {

// Lines, each indented and ended: first what the ranks are in, equal ones together, in the order of ranks;
// then what follows from that, as far as it is certain: ranks that wait for themselves, for one that has
// finished, or in a circle, and collectives that not all ranks of the communicator are in.
[[nodiscard]] std::string deadlock_report(const std::vector<RankFacts>& ranks);

}  // namespace apenet
