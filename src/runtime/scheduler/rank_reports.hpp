// Reports about the ranks, from what they have written into their notes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/scheduler/delivery.hpp"
#include "runtime/scheduler/left_behind.hpp"
#include "runtime/scheduler/process_memory.hpp"
#include "runtime/scheduler/rank_table.hpp"
#include "runtime/scheduler/shared_memory.hpp"

namespace apenet {

// "exchange.c:12", where the program makes a call (ipc::CallNote); empty if it is not known.
using PlaceOfCall = std::function<std::string(std::uint32_t rank, std::uint64_t caller, std::uint64_t frame)>;

// What the ranks wait for and why none can continue; see deadlock_report.hpp. Requires that all wait, or that
// those that run are blocked in the host.
[[nodiscard]] std::string describe_waiting(const RankTable& ranks, const Delivery& delivery,
                                           SharedMemory& shared, ProcessMemory& memory,
                                           const PlaceOfCall& place_of);

// What ranks that have finalised MPI left behind: windows, messages that nobody has received. Lines for the
// report. untaken: messages that the ranks have not taken when they left.
[[nodiscard]] std::vector<std::string> describe_left_behind(SharedMemory& shared,
                                                            const UnreceivedMessages& untaken,
                                                            const LineOfCode& line_of);

}  // namespace apenet
