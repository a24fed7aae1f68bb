// Starts the processes of a plan.
#pragma once

#include <string>
#include <vector>

#include "runtime/supervisor/plan.hpp"

namespace apenet::supervisor {

// Starts a process of the plan. Returns its process id, or the negative errno. The process leads a process
// group of its own, has an empty signal mask, and is killed when the caller ends. `extra`: variables for all
// processes of the plan.
int start(const Plan& plan, const PlannedProcess& process, const std::vector<std::string>& extra);

}  // namespace apenet::supervisor
