#include "runtime/launch/run_loop.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <new>
#include <set>
#include <string>
#include <utility>

#include "runtime/ipc/futex.hpp"
#include "runtime/launch/direct_calls.hpp"
#include "runtime/launch/host_thread.hpp"
#include "runtime/launch/host_waits.hpp"
#include "runtime/launch/outside_waits.hpp"
#include "runtime/launch/wait_text.hpp"
#include "runtime/scheduler/rank_error.hpp"
#include "runtime/scheduler/rank_reports.hpp"

namespace apenet {
namespace {

using namespace std::chrono_literals;

constexpr auto loop_check_interval = 20ms;
constexpr auto idle_after_failure = 100ms;
constexpr int most_yields = 2;
constexpr int limit_status = 124;  // as of timeout(1)
constexpr auto cancel_patience = 2s;

// While computation is recorded, one rank runs at a time: several cores serve only the rotation.
CoreUse cores_of(const SessionOptions& options) {
  const bool is_recording = options.compute == ipc::ComputeMode::record;
  return is_recording && options.cores == CoreUse::adaptive ? CoreUse::one : options.cores;
}

}  // namespace

RunLoop::RunLoop(SharedMemory& shared, SharedModel& model, Scheduler& scheduler, ProcessIds& process_ids,
                 ProcessMemory& memory, const SessionOptions& options, const std::vector<RankProcess>& ranks,
                 int supervisor_fd, const ManagerSocket& manager)
    : shared_(shared),
      model_(model),
      scheduler_(scheduler),
      view_(scheduler.view()),
      process_ids_(process_ids),
      memory_(memory),
      options_(options),
      count_(static_cast<std::uint32_t>(ranks.size())),
      server_(shared, scheduler, process_ids, verdict_, options, ranks, supervisor_fd, manager),
      drain_(view_, server_, options.drain_cpu_ms, count_),
      idle_(options),
      polls_(view_, options),
      start_(view_.ranks, server_, options, lines_),
      stopped_(server_, options),
      strays_(process_ids),
      stalled_(scheduler, server_, options, lines_),
      host_deadlock_(view_.ranks, server_, options),
      cores_(cores_of(options)) {
  if (options.compute == ipc::ComputeMode::record) rotation_.emplace();
}

void RunLoop::end() {
  guarded([&] { wait_for_last_output(); });
  guarded([&] {
    if (!verdict_.is_stopped() && server_.failures().empty()) server_.find_vanished();
  });
  std::set<std::string> left;
  const auto stop_strays = [&] {
    if (server_.processes().has_supervisor()) left.merge(strays_.stop());
  };
  guarded(stop_strays);
  continue_supervisor();
  guarded([&] {
    if (server_.processes().any_alive()) server_.terminate();
  });
  guarded(stop_strays);  // those that have come up meanwhile
  continue_supervisor();
  guarded([&] { server_.kill_all(); });
  for (const std::string& segment : left) unlink(segment.c_str());
  guarded([&] { server_.finish_output(); });
  if (server_.failures().empty()) server_.notice_lost_output();
  guarded([&] { model_.leave(scheduler_); });
}

// An exception ends the run but not the simulator: the ranks are ended and their output is kept.
template <typename Work>
void RunLoop::guarded(Work work) {
  constexpr auto failed = SessionReport::Outcome::failed;
  try {
    work();
  } catch (const RankError& error) {
    server_.failure_watch().note(error);
    verdict_.stop(failed, 1, error.what());
  } catch (const std::bad_alloc&) {
    verdict_.stop(failed, 1, "the simulator is out of memory");
  } catch (const std::exception& error) {
    verdict_.stop(failed, 1, std::string("the simulator cannot continue: ") + error.what());
  }
}

bool RunLoop::is_live() const {
  if (verdict_.is_stopped() || is_drained_) return false;
  return server_.any_alive() || awaits_last_step();
}

// The processes have ended, perhaps while other jobs held the model: the scheduler has yet to take what they
// have posted and taken since the step before.
bool RunLoop::awaits_last_step() const {
  return view_.ranks.started() && !all_finished_ && server_.failures().empty() && view_.grants.nobody_runs();
}

void RunLoop::turn(bool others_go_on, const std::function<bool()>& interrupted) {
  wants_step_ = false;
  guarded([&] {
    limit_if_cancelled();
    if (const auto first = server_.failures().first_to_end_others()) {
      drain(*first, others_go_on);
    } else if (!all_finished_ && view_.grants.nobody_runs() && !stalled_.waits_for_suspended()) {
      if (is_at_limit()) {
        verdict_.stop(SessionReport::Outcome::limit, limit_status, "ended at the limit of virtual time");
      } else {
        wants_step_ = true;
      }
    } else {
      wait_for_processes(others_go_on);
      stalled_.suspend_sleepers();
      stalled_.suspend_spinners();
      if (host_deadlock_.is_stuck() && !server_.refuse_two_libraries() && !server_.abandon_daemons())
        on_host_deadlock();
    }
    if (!wants_step_) check_periodically(interrupted);
  });
}

void RunLoop::serve_meanwhile(const std::function<bool()>& interrupted) {
  guarded([&] {
    server_.serve(0);
    server_.pass_output();
    check_periodically(interrupted);
  });
}

void RunLoop::note_join() {
  wants_step_ = is_ready_ = false;
  guarded([&] { cores_.begin(process_ids_.all_running()); });
}

void RunLoop::cancel() {
  if (!cancelled_until_) cancelled_until_ = WallClock::now() + cancel_patience;
}

void RunLoop::limit_if_cancelled() {
  if (!cancelled_until_ || verdict_.is_stopped()) return;
  // Ranks that wait for other jobs, which hold the model, are not in the middle of anything.
  if (!all_finished_ && view_.grants.nobody_runs() && view_.ranks.suspended().empty())
    cancelled_until_ = WallClock::now() + cancel_patience;
  if (!view_.ranks.started() || WallClock::now() > *cancelled_until_) {
    verdict_.stop(SessionReport::Outcome::interrupted, 128 + SIGTERM, "cancelled");
  } else if (options_.limit_virtual_ps == 0 && view_.grants.nobody_runs()) {
    std::int64_t reached_ps = view_.ranks.epoch_ps() + 1;
    for (std::uint32_t rank = 0; rank < count_; ++rank)
      reached_ps = std::max(reached_ps, shared_.block(rank).clock.now_ps());
    options_.limit_virtual_ps = reached_ps - view_.ranks.epoch_ps();
  }
}

// No rank acts until the limit any more. As after a failure, a wait that a rank has begun before may end
// after it.
bool RunLoop::is_at_limit() {
  if (options_.limit_virtual_ps == 0 || !view_.ranks.started()) return false;
  const std::int64_t limit_ps = view_.ranks.epoch_ps() + options_.limit_virtual_ps;
  scheduler_.end_at(limit_ps);
  return drain_.all_act_after(limit_ps);
}

void RunLoop::begin_step() {
  // All ranks wait. Read everything that they have written before any of them is woken.
  guarded([&] {
    while (server_.serve(0)) {
    }
  });
  wants_step_ = !verdict_.is_stopped();
  stalled_.note_all_wait();
  host_deadlock_.note_progress();
  cores_.note_all_wait();
  if (shared_.header().lets_compute_overlap != 0) cores_.spread_overlapped(view_, process_ids_);
  if (rotation_ && view_.ranks.started()) rotation_->rotate(shared_, process_ids_.all_running());
  if (const auto first = server_.failures().first_to_end_others()) scheduler_.end_at(first->time_ps);
  was_started_ = view_.ranks.started();
}

void RunLoop::end_step(const std::function<bool()>& interrupted) {
  guarded([&] {
    note_outcome();
    check_periodically(interrupted);
  });
}

void RunLoop::note_outcome() {
  Scheduler::Outcome outcome{};
  try {
    outcome = scheduler_.outcome();
  } catch (const NetworkPartitioned& partition) {
    verdict_.stop(SessionReport::Outcome::failed, 1,
                  std::string("the network is partitioned: ") + partition.what() +
                      "; each rank's clock shows when it began to wait, before that or after");
    return;
  } catch (const PastEndOfTime& end) {
    const std::string oldest = view_.delivery.oldest_message();
    verdict_.stop(SessionReport::Outcome::failed, 1,
                  end.what() + (oldest.empty() ? "" : "; the first one under way is " + oldest));
    return;
  } catch (const EndOfTime& end) {
    verdict_.stop(SessionReport::Outcome::failed, 1, end.what());
    return;
  }
  server_.pass_output();
  if (const std::string notice = polls_.check(); !notice.empty())
    dprintf(options_.error_fd, "%s%s", notice.c_str(), describe_waiting().c_str());
  // Not earlier: before virtual time, the processes start up independently, which is faster on all cores.
  if (!was_started_ && view_.ranks.started()) cores_.begin(process_ids_.all_running());
  if (outcome == Scheduler::Outcome::woken) cores_.note_round(view_.grants.last_woken().size());
  is_ready_ = outcome == Scheduler::Outcome::ready;
  if (outcome == Scheduler::Outcome::finished) {
    all_finished_ = true;
  } else if (outcome == Scheduler::Outcome::idle) {
    if (server_.failures().first_to_end_others()) {
      drain_.note_idle();
    } else {
      on_idle();
    }
  }
}

void RunLoop::wait_for_processes(bool others_go_on) {
  if (!view_.ranks.started() || all_finished_) {
    server_.serve(!all_finished_ ? 1 : others_go_on ? 0 : 20);
    server_.pass_output();
    if (!all_finished_ && start_.is_due()) start_.check();
    return;
  }
  ipc::Running& running = shared_.running();
  const std::uint32_t seen = running.count.load();
  if (seen == 0 && view_.grants.nobody_runs() && view_.ranks.suspended().empty()) return;
  // A rank on the same core runs, and mostly waits again, while the simulator yields. To sleep and to be
  // woken would take both processes longer.
  for (int i = 0; seen != 0 && i < most_yields; ++i) {
    sched_yield();
    if (running.count.load() == 0) return;
  }
  const timespec patience{0, 1'000'000};
  running.awaited.store(1);
  ipc::futex_wait(running.count, seen, &patience);
  running.awaited.store(0);
  if (running.count.load() != seen) return;
  // A rank computes, waits for the host, or has filled its output pipe.
  server_.serve(0);
  server_.pass_output();
  stalled_.note_busy();
  if (view_.grants.any_is_queued()) let_another_run();
}

// A rank that waits in the host may wait for another that has no grant yet (in MPI_Finalize).
void RunLoop::let_another_run() {
  constexpr std::uint32_t most_checks = 5;
  const std::vector<int> process_ids = process_ids_.all_running();
  bool any_active = false;
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    if (shared_.block(rank).grant.run.load() != ipc::Run::may_run || process_ids[rank] == 0) continue;
    for (const int thread : threads_of(process_ids[rank])) {
      const auto state = thread_state(process_ids[rank], thread);
      any_active = any_active || (state && state->state != 'S');
    }
    any_active = any_active || !waits_outside_for(view_.ranks, rank).empty();
  }
  sleeping_checks_ = any_active ? 0 : sleeping_checks_ + 1;
  if (sleeping_checks_ < most_checks) return;
  sleeping_checks_ = 0;
  scheduler_.grant_next();
}

// All ranks wait and the network is empty: either something outside the network must act (a process manager,
// another thread), or the program is deadlocked.
void RunLoop::on_idle() {
  const auto idle = idle_.note(view_.ranks.activity());
  // A rank failed after it had left, and the others wait forever. Report the failure, not a deadlock.
  if (!server_.failures().empty() && idle > idle_after_failure) {
    is_drained_ = true;
    return;
  }
  const bool started = view_.ranks.started();
  const std::vector<int> process_ids = process_ids_.all_running();
  const auto pause = [this](int ms) { server_.serve(ms); };
  const IdleWatch::Questions questions{
      .only_run_can_act = [&] { return stalled_.only_run_can_act(process_ids); },
      .outside_wait = [&] { return stalled_.outside_wait(process_ids); },
      .suspended = view_.ranks.suspended()};
  if (idle_.is_stuck(started, process_ids, pause, questions)) {
    verdict_.stop(SessionReport::Outcome::deadlock, 1,
                  "every process waits and the network is empty\n" + describe_waiting() +
                      idle_.describe_sleepers(process_ids, view_.ranks.suspended(), lines_));
    return;
  }
  if (idle_.has_released_often()) server_.serve(started ? 5 : 1);
  scheduler_.release_idle([&](std::uint32_t rank) { return threads_of(process_ids[rank]).size() > 1; });
}

std::string RunLoop::describe_waiting() {
  const std::vector<int> processes = process_ids_.all_running();
  return apenet::describe_waiting(view_.ranks, view_.delivery, shared_, memory_,
                                  [&](std::uint32_t rank, std::uint64_t caller, std::uint64_t frame) {
                                    return place_of_call(processes[rank], caller, frame, lines_);
                                  });
}

// No rank can return to the simulator.
void RunLoop::on_host_deadlock() {
  is_blocked_for_ever_ = true;
  verdict_.stop(SessionReport::Outcome::deadlock, 1,
                "every thread of the ranks waits, and none of them can wake another\n" + describe_waiting() +
                    host_deadlock_.describe(lines_));
}

// Called while a rank has failed: brings the other ranks to the point at which they are ended.
void RunLoop::drain(VirtualInstant first_failure, bool others_go_on) {
  const bool all_wait = view_.grants.all_wait();
  switch (drain_.next(first_failure, all_wait && !all_finished_)) {
    case Drain::Next::step:
      wants_step_ = true;
      break;
    case Drain::Next::wait:
      if (!all_wait && view_.ranks.started() && !all_finished_) {
        wait_for_processes(others_go_on);
      } else {
        server_.serve(5);
        server_.pass_output();
      }
      break;
    case Drain::Next::stop:
      // A rank that was running when next() was called may have begun to wait since; then a step may be due.
      is_drained_ = all_wait || all_finished_ || !view_.grants.all_wait();
      break;
  }
}

// If the run ended by itself (for example in a deadlock), wait until the ranks that have left it have ended
// too, and until the overlapped ones have finished: what they print must not depend on the host.
void RunLoop::wait_for_last_output() {
  if (verdict_.is_from_outside() || is_blocked_for_ever_) return;
  while (drain_.next_after_last_step() == Drain::Next::wait) server_.serve(5);
}

void RunLoop::check_periodically(const std::function<bool()>& interrupted) {
  server_.notice_failures();
  if (!server_.failures().empty() && server_.processes().all_leaders_ended()) is_drained_ = true;
  const auto now = WallClock::now();
  if (now < next_check_ || verdict_.is_stopped()) return;
  next_check_ = now + loop_check_interval;
  server_.watch_attached();
  continue_supervisor();
  if (!view_.ranks.started() || all_finished_) stopped_.check();
  if (server_.processes().has_supervisor()) {
    std::string stray = strays_.check();
    if (!stray.empty()) verdict_.stop(SessionReport::Outcome::failed, 2, std::move(stray));
  }
  scheduler_.recover();
  cores_.adapt(process_ids_.all_running());
  if (interrupted()) verdict_.stop(SessionReport::Outcome::interrupted, 128 + SIGINT, "interrupted");
  server_.notice_lost_output();
}

// The run hears of ends from the supervisor, and its own end needs it; a rank may have stopped it, its
// parent.
void RunLoop::continue_supervisor() {
  if (!server_.processes().has_supervisor()) return;
  const int supervisor = process_ids_.tree().root();
  const auto state = thread_state(supervisor, supervisor);
  if (!state || state->state != 'T') return;
  kill(supervisor, SIGCONT);
  if (std::exchange(has_told_of_supervisor_, true)) return;
  dprintf(options_.error_fd,
          "apenet: apenet-supervisor, the parent of the ranks, was stopped by a signal; it goes on\n");
}

void RunLoop::report_on(SessionReport& report) {
  server_.report(report);
  for (std::string& warning : stalled_.warnings()) report.warnings.push_back(std::move(warning));
  for (std::string& warning : direct_call_warnings(view_.ranks))
    report.warnings.push_back(std::move(warning));
  for (std::string& warning : outside_warnings(view_.ranks)) report.warnings.push_back(std::move(warning));
  const auto line_of = [this](const std::string& file, std::uint64_t address) {
    return lines_.lines_of_calls(file, {address}).front();
  };
  for (std::string& warning : describe_left_behind(shared_, view_.delivery.untaken(), line_of))
    report.warnings.push_back(std::move(warning));
  if (!drain_.given_up().empty())
    report.warnings.push_back(name_ranks(drain_.given_up()) +
                              " still ran when the run was ended: what they printed depends on the host");
  server_.failure_watch().notice_strangers();
  const std::vector<std::uint32_t> passing = server_.failure_watch().passing();
  if (!passing.empty())
    report.warnings.push_back(
        name_ranks(passing) +
        " exited without calling MPI_Finalize, which MPI requires: mpiexec lets that pass");
  verdict_.report(report, passing.empty() ? server_.failures() : Failures{});
}

}  // namespace apenet
