// run_jobs: runs the jobs of a simulation together.
#pragma once

#include <functional>
#include <span>

#include "runtime/launch/run_loop.hpp"
#include "runtime/scheduler/shared_model.hpp"

namespace apenet {

// Returns when no process of any job is left. Each job ends by itself. Calls `interrupted` about fifty times
// a second; if it returns true, all jobs are ended.
void run_jobs(std::span<RunLoop* const> jobs, SharedModel& model, const std::function<bool()>& interrupted);

}  // namespace apenet
