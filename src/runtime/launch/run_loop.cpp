#include "runtime/launch/run_loop.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>

#include "runtime/ipc/futex.hpp"
#include "runtime/launch/host_thread.hpp"

namespace apenet {
namespace {

using namespace std::chrono_literals;

constexpr auto look_interval = 20ms;
constexpr auto idle_after_failure = 100ms;
constexpr auto terminate_grace = 300ms;  // between SIGTERM and SIGKILL
constexpr auto kill_patience = 2s;       // limit for killed processes to disappear

std::vector<int> pmi_fds(const std::vector<RankProcess>& ranks) {
  std::vector<int> fds;
  fds.reserve(ranks.size());
  for (const RankProcess& rank : ranks) fds.push_back(rank.pmi_fd);
  return fds;
}

std::vector<std::array<int, 2>> pipes(const std::vector<RankProcess>& ranks) {
  std::vector<std::array<int, 2>> fds;
  fds.reserve(ranks.size());
  for (const RankProcess& rank : ranks) fds.push_back({rank.output_fd, rank.error_fd});
  return fds;
}

// The run was ended from outside, not by its ranks.
bool is_from_outside(SessionReport::Outcome outcome) {
  return outcome == SessionReport::Outcome::interrupted || outcome == SessionReport::Outcome::output_closed;
}

std::string signal_name(int signal) {
  const char* name = sigdescr_np(signal);
  return "signal " + std::to_string(signal) +
         (name != nullptr ? std::string(" (") + name + ")" : std::string{});
}

}  // namespace

RunLoop::RunLoop(Mapping& mapping, Scheduler& scheduler, const SessionOptions& options,
                 const std::vector<RankProcess>& ranks, int launcher_id, int warden_fd)
    : mapping_(mapping),
      scheduler_(scheduler),
      options_(options),
      count_(static_cast<std::uint32_t>(ranks.size())),
      pmi_(pmi_fds(ranks)),
      output_(scheduler, pipes(ranks), {options.output_fd, options.error_fd}, options.tag_output),
      children_(2 * ranks.size() + 1, warden_fd),
      told_(options.told_fd, count_),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      settling_(
          scheduler, pmi_, options.settle_cpu_ms, count_,
          [this](std::uint32_t rank) { return output_.ended(rank); },
          [this](std::uint32_t rank) { return group_of(rank); }),
      ended_by_us_(count_),
      idle_(options),
      start_(options) {
  if (epoll_ < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    add(ranks[rank].pmi_fd, Source::pmi, rank);
    add(ranks[rank].output_fd, Source::output, rank);
    add(ranks[rank].error_fd, Source::error, rank);
    if (ranks[rank].process_id != 0) add(children_.watch(rank, ranks[rank].process_id), Source::child, rank);
  }
  add(told_.fd(), Source::told, 0);
  add(warden_fd, Source::warden, static_cast<std::size_t>(warden_fd));
  if (launcher_id != 0)
    add(children_.watch(2 * std::size_t{count_}, launcher_id), Source::child, 2 * std::size_t{count_});
}

RunLoop::~RunLoop() {
  close(epoll_);
}

void RunLoop::add(int fd, Source source, std::size_t index) {
  if (fd < 0) return;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<std::uint64_t>(source) << 32 | index;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) {
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
  }
}

void RunLoop::run(SessionReport& report, const std::function<bool()>& interrupted) {
  guarded([&] { live(interrupted); });
  guarded([&] { wait_for_leavers(); });
  guarded([&] {
    if (children_.alive() > 0) terminate();
  });
  guarded([&] { kill_all(); });  // also processes that ranks left running
  guarded([&] { output_.finish(count_); });
  if (failures_.empty()) notice_lost_output();
  judge(report);
}

// An exception ends the run but not the simulator: the ranks are ended and their output is kept.
template <typename Work>
void RunLoop::guarded(Work work) {
  try {
    work();
  } catch (const RankError& error) {
    note(error);
    stop(SessionReport::Outcome::failed, 1, error.what());
  } catch (const std::bad_alloc&) {
    stop(SessionReport::Outcome::failed, 1, "the simulator is out of memory");
  } catch (const std::exception& error) {
    stop(SessionReport::Outcome::failed, 1, std::string("the simulator cannot continue: ") + error.what());
  }
}

void RunLoop::live(const std::function<bool()>& interrupted) {
  while (children_.alive() > 0 && !stop_ && !is_settled_) {
    if (const auto first = failures_.first_to_end_others()) {
      settle(*first);
    } else if (!all_finished_ && scheduler_.nobody_runs() && !waits_for_absent()) {
      step();
    } else {
      wait_for_processes();
      leave_out_sleepers();
    }
    look_around(interrupted);
  }
}

void RunLoop::note(const RankError& error) {
  failures_.add(error.rank(), {.time_ps = scheduler_.clock_ps(error.rank()), .what = error.deed()});
}

// Called while a rank has failed: brings the other ranks to the point at which they are ended.
void RunLoop::settle(VirtualInstant first_failure) {
  const bool all_wait = scheduler_.all_wait();
  switch (settling_.next(first_failure, all_wait && !all_finished_)) {
    case Settling::Next::step:
      step();
      break;
    case Settling::Next::wait:
      if (!all_wait && scheduler_.started() && !all_finished_) {
        wait_for_processes();
      } else {
        serve(5);
        output_.pass();
      }
      break;
    case Settling::Next::stop:
      // A rank that was running when next() was called may have begun to wait since; then a step may be due.
      is_settled_ = all_wait || all_finished_ || !scheduler_.all_wait();
      break;
  }
}

// If the run ended by itself (for example in a deadlock), wait until the ranks that have left it have ended
// too.
void RunLoop::wait_for_leavers() {
  if (stop_ && is_from_outside(stop_->outcome)) return;
  while (settling_.next_of_leavers() == Settling::Next::wait) serve(5);
}

void RunLoop::step() {
  // All ranks wait. Read everything that they have written before any of them is woken.
  while (serve(0)) {
  }
  busy_since_.reset();
  const bool was_started = scheduler_.started();
  Scheduler::Outcome outcome{};
  try {
    outcome = scheduler_.step();
  } catch (const NetworkPartitioned& partition) {
    stop(SessionReport::Outcome::failed, 1,
         std::string("the network is partitioned: ") + partition.what() +
             "; each rank's clock shows when it began to wait, before that or after");
    return;
  } catch (const EndOfTime& end) {
    stop(SessionReport::Outcome::failed, 1, end.what());
    return;
  }
  output_.pass();
  if (!was_started && scheduler_.started() && options_.pin) begin_pinned();
  switch (outcome) {
    case Scheduler::Outcome::woken:
      break;
    case Scheduler::Outcome::idle:
      if (failures_.first_to_end_others()) {
        settling_.note_idle();
      } else {
        on_idle();
      }
      break;
    case Scheduler::Outcome::finished:
      all_finished_ = true;
      break;
  }
}

// Pin only when virtual time begins: before that, the processes start up independently, which is faster on
// all cores.
void RunLoop::begin_pinned() {
  affinity_.emplace();
  for (std::uint32_t rank = 0; rank < count_; ++rank) affinity_->hold(scheduler_.process_id(rank));
}

void RunLoop::wait_for_processes() {
  if (!scheduler_.started() || all_finished_) {
    serve(all_finished_ ? 20 : 1);
    output_.pass();
    if (!all_finished_ && start_.is_due()) watch_start();
    return;
  }
  std::atomic<std::uint32_t>& running = mapping_.running();
  const std::uint32_t seen = running.load();
  if (seen == 0 && scheduler_.nobody_runs() && scheduler_.left_out().empty()) return;
  const timespec patience{0, 1'000'000};
  ipc::futex_wait(running, seen, &patience);
  if (running.load() != seen) return;
  // A rank computes, waits for the host, or has filled its output pipe.
  serve(0);
  output_.pass();
  notice_busy();
}

// Ranks that have spoken with the process manager are in MPI_Init, and wait there for the others.
void RunLoop::watch_start() {
  std::vector<std::uint32_t> missing;
  std::vector<int> processes = rank_processes();
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    if (processes[rank] == 0) processes[rank] = children_.process_id(rank);
    if (scheduler_.wait_of(rank) == ipc::Wait::running && !pmi_.spoke(rank)) missing.push_back(rank);
  }
  if (missing.size() == count_) missing.clear();
  start_.look(missing, processes);
}

// Prints one notice if a rank keeps the run waiting for long: ranks that communicate outside MPI can block
// each other. The notice has no other effect.
void RunLoop::notice_busy() {
  if (busy_told_) return;
  const auto now = WallClock::now();
  if (!busy_since_) busy_since_ = now;
  const auto busy = std::chrono::duration_cast<std::chrono::milliseconds>(now - *busy_since_);
  if (busy.count() < options_.busy_notice_ms) return;
  std::uint32_t others = 0;
  std::optional<std::uint32_t> first;
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    if (scheduler_.wait_of(rank) != ipc::Wait::running) continue;
    if (first) ++others;
    if (!first) first = rank;
  }
  if (!first) return;
  busy_told_ = true;
  const std::string more = others > 0 ? " (as have " + std::to_string(others) + " more)" : std::string{};
  dprintf(options_.error_fd,
          "apenet: rank %u has been busy in the host for %.1f s%s: it %s; virtual time waits for it\n",
          *first, static_cast<double>(busy.count()) * 1e-3, more.c_str(),
          describe_work(rank_processes(), *first).c_str());
}

// Ranks that communicate in the host would wait for each other forever if one of them waits for its turn in
// the simulation. Leaves out the ranks that are asleep.
void RunLoop::leave_out_sleepers() {
  if (!busy_since_) return;
  const std::vector<std::uint32_t> ranks = scheduler_.held_up_by();
  if (ranks.empty()) return;
  const int launcher_id = children_.process_id(2 * std::size_t{count_});
  if (!sleep_.are_asleep(ranks, rank_processes(), launcher_id)) return;
  if (scheduler_.leave_out(ranks, [&] { return sleep_.still_asleep(ranks); })) sleep_.note_left_out(ranks);
}

// Whether the step has to wait for a left-out rank. A left-out rank that has woken counts as running.
bool RunLoop::waits_for_absent() {
  const std::vector<std::uint32_t> ranks = scheduler_.left_out();
  return !ranks.empty() && (scheduler_.all_are_left_out() || !sleep_.still_asleep(ranks));
}

// All ranks wait and the network is empty: either something outside the network must act (a process manager,
// another thread), or the program is deadlocked.
void RunLoop::on_idle() {
  const auto idle = idle_.note(activity_of_all());
  // A rank failed after it had left, and the others wait forever. Report the failure, not a deadlock.
  if (!failures_.empty() && idle > idle_after_failure) {
    is_settled_ = true;
    return;
  }
  const bool started = scheduler_.started();
  const std::vector<int> process_ids = rank_processes();
  if (idle_.is_stuck(started, process_ids, [this](int ms) { serve(ms); })) {
    stop(SessionReport::Outcome::deadlock, 1,
         "every process waits and the network is empty\n" + scheduler_.describe_waiting() +
             idle_.describe_sleepers(process_ids));
    return;
  }
  if (idle_.has_released_often()) serve(started ? 5 : 1);
  scheduler_.release_idle([&](std::uint32_t rank) { return threads_of(process_ids[rank]).size() > 1; });
}

std::vector<int> RunLoop::rank_processes() {
  std::vector<int> process_ids;
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    process_ids.push_back(static_cast<int>(scheduler_.process_id(rank)));
  }
  return process_ids;
}

// Returns a number that changes whenever a process does anything: posts, receives, calls MPI, advances its
// clock.
std::uint64_t RunLoop::activity_of_all() const {
  std::uint64_t activity = scheduler_.activity();
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    const ipc::Block& block = mapping_.block(rank);
    if (scheduler_.looks_for_ever(rank)) continue;
    activity += block.progress.calls() + static_cast<std::uint64_t>(block.clock.now_ps());
  }
  return activity;
}

void RunLoop::serve_pmi(std::uint32_t rank) {
  const int fd = pmi_.fd(rank);
  try {
    if (fd >= 0 && !pmi_.serve(rank)) epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  } catch (const RankError& error) {
    note(error);
  }
}

// Returns true if more events may be pending.
bool RunLoop::serve(int timeout_ms) {
  std::array<epoll_event, 64> ready{};
  const int count = epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), timeout_ms);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t data = ready[static_cast<std::size_t>(i)].data.u64;
    const auto source = static_cast<Source>(data >> 32);
    const auto index = static_cast<std::uint32_t>(data);
    switch (source) {
      case Source::pmi:
        serve_pmi(index);
        break;
      case Source::output:
        output_.read(index, 0);
        break;
      case Source::error:
        output_.read(index, 1);
        break;
      case Source::child:
        children_.reap(index);
        on_child_end(index);
        break;
      case Source::warden:
        hear_warden(static_cast<int>(index));
        break;
      case Source::told:
        hear_wrappers();
        break;
    }
  }
  return count == static_cast<int>(ready.size());
}

// An exit code with bits above the status byte is an error code of MPICH. A rank that aborts exits by itself
// after its message.
void RunLoop::notice_aborts() {
  for (const PmiServer::Abort& abort : pmi_.aborts()) {
    if (failures_.has(abort.rank) || ended_by_us_[abort.rank]) continue;
    const int low = abort.exit_code & 0xff;
    const int status = low == 0 ? 1 : low;
    const std::string beyond = low == abort.exit_code ? "" : ", which is status " + std::to_string(status);
    failures_.add(abort.rank, {.time_ps = scheduler_.clock_ps(abort.rank),
                               .outcome = SessionReport::Outcome::aborted,
                               .exit_status = status,
                               .what = "called MPI_Abort(" + std::to_string(abort.exit_code) + ")" + beyond});
  }
}

// A program without MPI may end at any time, but ranks that use MPI would wait for it.
void RunLoop::notice_strangers() {
  if (strangers_.empty()) return;
  bool any_mpi = false;
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    const ipc::Identity& identity = mapping_.block(rank).identity;
    any_mpi = any_mpi || identity.initialised != 0 || identity.initialising != 0 || pmi_.spoke(rank);
  }
  if (!any_mpi) return;
  for (const std::uint32_t rank : strangers_) {
    failures_.add(rank, {.time_ps = Scheduler::before_time_ps,
                         .what = "exited without calling MPI_Init while others run"});
  }
  strangers_.clear();
}

void RunLoop::look_around(const std::function<bool()>& interrupted) {
  notice_aborts();
  notice_strangers();
  // The wrappers of failed ranks wait to be ended, and their launcher waits for the wrappers.
  if (!failures_.empty() && children_.ended_all(count_)) is_settled_ = true;
  const auto now = WallClock::now();
  if (now < next_look_ || stop_) return;
  next_look_ = now + look_interval;
  watch_attached();
  scheduler_.recover();
  if (interrupted()) stop(SessionReport::Outcome::interrupted, 128 + SIGINT, "interrupted");
  notice_lost_output();
}

void RunLoop::notice_lost_output() {
  const int error = output_.sink_error();
  if (error == 0) return;
  constexpr auto outcome = SessionReport::Outcome::output_closed;
  if (error == EPIPE) {
    stop(outcome, 128 + SIGPIPE, "the reader of the output has closed it");
  } else {
    stop(outcome, 2, "the output cannot be written: " + std::generic_category().message(error));
  }
}

// A rank's MPI process may be a child of the process started for the rank (a script), or of another launcher
// (mpirun).
void RunLoop::watch_attached() {
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    const auto process_id = static_cast<int>(scheduler_.process_id(rank));
    const std::size_t index = std::size_t{count_} + rank;
    if (process_id == 0 || children_.watched(index) || children_.is(rank, process_id)) continue;
    add(children_.watch_foreign(index, process_id), Source::child, index);
    if (children_.ended(index)) on_child_end(index);
  }
}

void RunLoop::hear_warden(int fd) {
  for (const std::size_t index : children_.hear_warden()) on_child_end(index);
  if (children_.has_warden()) return;
  epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  if (children_.is_killed()) return;
  stop(SessionReport::Outcome::failed, 1,
       "apenet-warden, which starts the ranks and reports their ends, has ended");
  for (std::size_t index = 0; index <= 2 * std::size_t{count_}; ++index)
    add(children_.watch_without_warden(index), Source::child, index);
}

// A wrapper represents the process started for its rank and outlives it, because the launcher would end the
// other ranks if the wrapper failed.
void RunLoop::hear_wrappers() {
  for (const Told::Line& line : told_.read()) {
    if (line.is_end) {
      if (children_.watched(line.rank)) children_.tell_end(line.rank, line.value);
      on_rank_end(line.rank);
    } else if (!children_.watched(line.rank)) {
      add(children_.watch_foreign(line.rank, line.value), Source::child, line.rank);
    }
  }
}

void RunLoop::on_child_end(std::size_t index) {
  if (index < 2 * std::size_t{count_}) on_rank_end(static_cast<std::uint32_t>(index % count_));
}

// Called when the MPI process, the process started for the rank, or both have ended.
void RunLoop::on_rank_end(std::uint32_t rank) {
  int process_id = 0;
  try {
    process_id = static_cast<int>(scheduler_.process_id(rank));
  } catch (const RankError& error) {
    note(error);  // the process has ended all the same
  }
  const std::size_t leader = rank;
  const std::size_t attached = std::size_t{count_} + rank;
  const bool is_leader = process_id == 0 || children_.is(leader, process_id);
  // A script may end after its MPI process, or before it if it left the MPI process in the background.
  if (!children_.ended(is_leader ? leader : attached)) return;
  scheduler_.remove(rank);
  // MPICH reports a fatal error and continues, into a segmentation fault unless it is ended at once. Read the
  // report first.
  serve_pmi(rank);
  notice_aborts();
  const bool leader_is_gone = !children_.watched(leader) || children_.ended(leader);
  if (leader_is_gone) output_.end(rank);
  if (!ended_by_us_[rank]) note_failure(rank, children_.ended(leader) ? leader : attached);
}

void RunLoop::note_failure(std::uint32_t rank, std::size_t child) {
  const ipc::Identity& identity = mapping_.block(rank).identity;
  const bool has_left = identity.finalised != 0 || identity.closed != 0;
  RankFailure failure{.time_ps = scheduler_.clock_ps(rank), .ends_others = !has_left};
  if (children_.end(child) == RankReport::End::killed) {
    const int signal = children_.status(child);
    failure.exit_status = 128 + signal;
    failure.what = "was ended by " + signal_name(signal);
  } else if (children_.status(child) != 0) {
    failure.exit_status = children_.status(child);
    failure.what = "exited with status " + std::to_string(failure.exit_status);
  } else if (identity.initialised != 0 && !has_left && !failures_.has(rank)) {
    failure.what = "exited without calling MPI_Finalize";
  } else if (identity.initialising != 0 && !failures_.has(rank)) {
    // For example killed while running under a script that exits with status 0.
    failure.what = "ended inside MPI_Init";
  } else {
    const bool has_begun = identity.initialised != 0 || identity.joined != 0 || pmi_.spoke(rank);
    if (!has_begun && child == rank && !failures_.has(rank)) strangers_.push_back(rank);
    return;
  }
  failures_.add(rank, std::move(failure));
}

void RunLoop::stop(SessionReport::Outcome outcome, int exit_status, std::string message) {
  if (!stop_) stop_ = Stop{outcome, exit_status, std::move(message)};
}

int RunLoop::group_of(std::uint32_t rank) const {
  if (children_.watched(rank)) return children_.process_id(rank);
  return getpgid(static_cast<pid_t>(scheduler_.process_id(rank)));
}

void RunLoop::terminate() {
  for (std::uint32_t rank = 0; rank < count_; ++rank) ended_by_us_[rank] = !output_.ended(rank);
  children_.signal_all(SIGTERM);
  const auto deadline = WallClock::now() + terminate_grace;
  while (children_.alive() > 0 && WallClock::now() < deadline) serve(5);
}

void RunLoop::kill_all() {
  children_.kill_all();
  const auto last = WallClock::now() + kill_patience;
  while ((children_.alive() > 0 || children_.has_warden()) && WallClock::now() < last) serve(5);
}

void RunLoop::judge(SessionReport& report) {
  report.ranks.resize(count_);
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    const std::size_t child = children_.watched(rank) ? rank : std::size_t{count_} + rank;
    report.ranks[rank].end = ended_by_us_[rank] ? RankReport::End::killed : children_.end(child);
    report.ranks[rank].status = ended_by_us_[rank] ? SIGTERM : children_.status(child);
    report.ranks[rank].spoke_pmi = pmi_.spoke(rank);
  }
  if (pmi_.spawn_refused())
    report.warnings.push_back(
        "MPI_Comm_spawn was refused: a simulated machine has a fixed number of processes");
  for (std::string& warning : sleep_.warnings()) report.warnings.push_back(std::move(warning));
  if (!settling_.restless().empty())
    report.warnings.push_back(
        name_ranks(settling_.restless()) +
        " had not come to rest when the run was ended: what they printed depends on the host");
  notice_strangers();
  failures_.report(report);
  if (stop_) {
    if (failures_.empty() || is_from_outside(stop_->outcome)) {
      report.outcome = stop_->outcome;
      report.exit_status = stop_->exit_status;
      report.message = stop_->message;
    }
  } else if (failures_.empty()) {
    const std::size_t launcher = 2 * std::size_t{count_};
    if (children_.watched(launcher) && children_.status(launcher) != 0) {
      report.outcome = SessionReport::Outcome::failed;
      report.exit_status = children_.status(launcher);
      report.message = "the launcher exited with status " + std::to_string(report.exit_status);
    }
  }
}

}  // namespace apenet
