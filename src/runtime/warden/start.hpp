// Starts the processes of a plan.
#pragma once

#include <string>
#include <vector>

#include "runtime/warden/plan.hpp"

namespace apenet::warden {

// The process id, or the negative errno. The process leads a group of its own, has an empty signal mask, and
// ends with the caller. `extra` are variables for all processes of the plan.
int start(const Plan& plan, const PlannedProcess& process, const std::vector<std::string>& extra);

}  // namespace apenet::warden
