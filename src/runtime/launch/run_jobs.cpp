#include "runtime/launch/run_jobs.hpp"

#include <algorithm>
#include <functional>
#include <vector>

namespace apenet {
namespace {

bool takes_part(const RunLoop* job) {
  return !job->all_finished();
}

// All whose ranks have not left the simulation.
bool all_want_step(const std::vector<RunLoop*>& jobs) {
  return std::any_of(jobs.begin(), jobs.end(), takes_part) &&
         std::all_of(jobs.begin(), jobs.end(),
                     [](const RunLoop* job) { return job->wants_step() || job->all_finished(); });
}

}  // namespace

void run_jobs(std::span<RunLoop* const> jobs, SharedModel& model, const std::function<bool()>& interrupted) {
  std::vector<RunLoop*> live(jobs.begin(), jobs.end());
  while (!live.empty()) {
    const auto begin_ended = std::stable_partition(live.begin(), live.end(), std::mem_fn(&RunLoop::is_live));
    for (auto ended = begin_ended; ended != live.end(); ++ended) (*ended)->end();
    live.erase(begin_ended, live.end());
    const bool any_takes_part = std::any_of(live.begin(), live.end(), takes_part);
    for (RunLoop* job : live) job->turn(any_takes_part, interrupted);
    // A job that a turn has ended holds the model until its processes have ended, too.
    if (!all_want_step(live)) {
      for (RunLoop* job : live) {
        if (job->wants_step()) job->serve_meanwhile(interrupted);
      }
      continue;
    }
    for (RunLoop* job : live) {
      if (job->wants_step()) job->begin_step();
    }
    if (!all_want_step(live)) continue;
    model.step();
    for (RunLoop* job : live) {
      if (job->wants_step()) job->end_step(interrupted);
    }
  }
}

}  // namespace apenet
