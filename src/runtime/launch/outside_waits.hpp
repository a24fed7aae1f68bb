// Reports ranks whose sleeps took real time, because they waited for something outside the simulation
// (shim/outside_waits.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/scheduler/rank_table.hpp"

namespace apenet {

// What the rank waits for at this moment in such a sleep, for example "a child process"; empty if it is in
// none.
[[nodiscard]] std::string_view waits_outside_for(const RankTable& ranks, std::uint32_t rank);
// For what it has waited so until the stall timeout, and waits no more in real time; empty: for nothing.
[[nodiscard]] std::string gave_up_outside(const RankTable& ranks, std::uint32_t rank);
// Warnings for the report of the run.
[[nodiscard]] std::vector<std::string> outside_warnings(const RankTable& table);

}  // namespace apenet
