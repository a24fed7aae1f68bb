#include "runtime/launch/failure_watch.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/scheduler/request_validation.hpp"

namespace apenet {
namespace {

std::string signal_name(int signal) {
  const char* name = sigdescr_np(signal);
  return "signal " + std::to_string(signal) +
         (name != nullptr ? std::string(" (") + name + ")" : std::string{});
}

}  // namespace

void FailureWatch::note(const RankError& error) {
  failures_.add(error.rank(),
                {.time_ps = ranks_.clock_ps(error.rank()), .what = error.deed(), .is_breach = true});
}

void FailureWatch::note_end(std::uint32_t rank, const RankProcesses& processes) {
  if (excused_[rank]) return;
  const RankProcesses::End end = processes.end_of_rank(rank);
  const bool is_leader = processes.end_of_leader(rank).how != RankReport::End::running;
  const ipc::Identity& identity = shared_.block(rank).identity;
  const bool has_left = identity.finalised != 0 || identity.closed != 0;
  RankFailure failure{.time_ps = ranks_.clock_ps(rank), .ends_others = !has_left};
  if (end.how == RankReport::End::killed) {
    failure.exit_status = 128 + end.status;
    failure.what = "was ended by " + signal_name(end.status);
    if (!end.wrapper.empty()) failure.what += ", which " + end.wrapper + " got, the wrapper of its program";
  } else if (end.status != 0) {
    failure.exit_status = end.status;
    failure.what = "exited with status " + std::to_string(end.status);
  } else if (identity.initialised != 0 && !has_left && !failures_.has(rank)) {
    failure.what = "exited without calling MPI_Finalize";
    // The others go on as long as they do not wait for it. Behind a script, it may have crashed.
    failure.may_pass =
        !processes.is_behind_leader(rank) && !validation::library(identity).starts_with("Open MPI");
    failure.ends_others = !failure.may_pass;
  } else if (identity.initialising != 0 && !failures_.has(rank)) {
    // For example killed while running under a script that exits with status 0.
    failure.what = "ended inside MPI_Init";
  } else {
    const bool has_begun = identity.initialised != 0 || identity.joined != 0 || pmi_.spoke(rank);
    if (!has_begun && is_leader && !failures_.has(rank)) strangers_.push_back(rank);
    return;
  }
  failures_.add(rank, std::move(failure));
}

std::vector<std::uint32_t> FailureWatch::passing() const {
  if (std::find(excused_.begin(), excused_.end(), true) != excused_.end()) return {};
  return failures_.passing();
}

bool FailureWatch::notice_refusal(std::uint32_t rank, const std::string& printed) {
  if (excused_[rank]) return false;
  std::string why = validation::refusal(shared_.block(rank).identity);
  if (why.empty()) why = validation::printable(printed.empty() ? pmi_.refusal(rank) : printed);
  if (why.empty()) return false;
  failures_.add(rank, {.time_ps = ranks_.clock_ps(rank),
                       .exit_status = 2,
                       .what = "was refused: " + why,
                       .is_refusal = true});
  return true;
}

void FailureWatch::notice_aborts() {
  for (const PmiServer::Abort& abort : pmi_.aborts()) add_abort(abort.rank, abort.exit_code);
}

void FailureWatch::notice_abort(std::uint32_t rank) {
  const ipc::Identity& identity = shared_.block(rank).identity;
  if (identity.aborted != 0) add_abort(rank, identity.abort_code);
}

// An exit code with bits above the status byte is an error code of MPICH. A rank that aborts exits by itself
// after its message.
void FailureWatch::add_abort(std::uint32_t rank, int exit_code) {
  if (failures_.has(rank) || excused_[rank]) return;
  const int low = exit_code & 0xff;
  const int status = low == 0 && exit_code != 0 ? 1 : low;
  const std::string beyond = low == exit_code ? "" : ", which is status " + std::to_string(status);
  failures_.add(rank, {.time_ps = ranks_.clock_ps(rank),
                       .outcome = SessionReport::Outcome::aborted,
                       .exit_status = status,
                       .what = "called MPI_Abort(" + std::to_string(exit_code) + ")" + beyond});
}

// A program without MPI may end at any time, but ranks that use MPI would wait for it.
void FailureWatch::notice_strangers() {
  if (strangers_.empty()) return;
  bool any_mpi = false;
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    const ipc::Identity& identity = shared_.block(rank).identity;
    any_mpi = any_mpi || identity.initialised != 0 || identity.initialising != 0 || pmi_.spoke(rank);
  }
  if (!any_mpi) return;
  for (const std::uint32_t rank : strangers_) {
    failures_.add(
        rank, {.time_ps = before_time_ps,
               .what = "exited without calling MPI_Init while others run; no process that it had left behind "
                       "could still do so"});
  }
  strangers_.clear();
}

}  // namespace apenet
