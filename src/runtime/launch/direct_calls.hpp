// Warnings of system calls that the code of a rank has made itself, and that the shim could not answer
// (ipc/direct_note.hpp).
#pragma once

#include <string>
#include <vector>

#include "runtime/scheduler/rank_table.hpp"

namespace apenet {

[[nodiscard]] std::vector<std::string> direct_call_warnings(const RankTable& table);

}  // namespace apenet
