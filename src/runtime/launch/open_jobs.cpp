#include "runtime/launch/open_jobs.hpp"

#include <algorithm>
#include <utility>

namespace apenet {
namespace {

using namespace std::chrono_literals;

// A turn of a job that starts up waits for its processes, so those that run would wait, too.
constexpr auto start_up_interval = 5ms;

}  // namespace

void OpenJobs::add(std::size_t number, RunLoop& loop, Scheduler& scheduler, std::vector<NodeId> nodes,
                   std::optional<std::int64_t> start_ps) {
  jobs_.push_back({number, &loop, &scheduler, std::move(nodes), start_ps});
}

std::vector<std::size_t> OpenJobs::turn(const std::function<bool()>& interrupted) {
  std::vector<std::size_t> ended;
  for (OpenJob& job : jobs_) {
    if (job.loop->is_live()) continue;
    job.loop->end();
    ended.push_back(job.number);
  }
  std::erase_if(jobs_,
                [&](const OpenJob& job) { return std::ranges::find(ended, job.number) != ended.end(); });
  if (!ended.empty()) return ended;
  const bool others_go_on = any_takes_part();
  for (OpenJob& job : jobs_) {
    if (job.has_joined) {
      job.loop->turn(others_go_on, interrupted);
    } else if (const auto now = WallClock::now(); now >= job.next_turn || !others_go_on) {
      start_up(job, interrupted);
      job.next_turn = now + start_up_interval;
    }
  }
  if (!all_want_step()) {
    for (OpenJob& job : jobs_) {
      if (job.has_joined && job.loop->wants_step()) job.loop->serve_meanwhile(interrupted);
    }
  } else if (!join_ready() && others_go_on) {
    step(interrupted);
  }
  return {};
}

bool OpenJobs::any_takes_part() const {
  return std::ranges::any_of(jobs_,
                             [](const OpenJob& job) { return job.has_joined && !job.loop->all_finished(); });
}

// All that have joined and whose ranks have not left the simulation; perhaps there are none.
bool OpenJobs::all_want_step() const {
  return std::ranges::all_of(jobs_, [](const OpenJob& job) {
    return !job.has_joined || job.loop->wants_step() || job.loop->all_finished();
  });
}

void OpenJobs::start_up(OpenJob& job, const std::function<bool()>& interrupted) {
  job.loop->turn(false, interrupted);
  job.is_ready = false;
  if (!job.loop->wants_step()) return;
  job.loop->begin_step();
  if (!job.loop->wants_step()) return;
  model_.step_outside(*job.scheduler);
  job.loop->end_step(interrupted);
  job.is_ready = job.loop->is_live() && job.loop->is_ready();
}

// Returns whether a job has joined: its ranks run.
bool OpenJobs::join_ready() {
  std::vector<OpenJob*> ready;
  for (OpenJob& job : jobs_) {
    if (job.is_ready) ready.push_back(&job);
    // Its start is known, so another one's may be earlier than the model has got to when it is ready.
    if (job.start_ps && !job.has_joined && !job.is_ready && job.loop->is_live()) return false;
  }
  for (OpenJob* job : ready) {
    const std::int64_t at_ps =
        job->start_ps ? SharedModel::open_epoch_ps + *job->start_ps : model_.earliest_join_ps();
    model_.join(*job->scheduler, job->nodes, at_ps);
    job->is_ready = false;
    job->has_joined = true;
    job->loop->note_join();
  }
  return !ready.empty();
}

void OpenJobs::step(const std::function<bool()>& interrupted) {
  const auto for_each = [this](const auto& act) {
    for (OpenJob& job : jobs_) {
      if (job.has_joined && job.loop->wants_step()) act(*job.loop);
    }
  };
  for_each([](RunLoop& loop) { loop.begin_step(); });
  if (!all_want_step()) return;
  model_.step();
  for_each([&](RunLoop& loop) { loop.end_step(interrupted); });
}

}  // namespace apenet
