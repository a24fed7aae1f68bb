#include "runtime/launch/start_watch.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "runtime/launch/wait_text.hpp"
#include "runtime/scheduler/rank_names.hpp"

namespace apenet {
namespace {

constexpr std::chrono::milliseconds most_between_checks{1000};

}  // namespace

StartWatch::StartWatch(const RankTable& ranks, const RankServer& server, const SessionOptions& options,
                       SourceLines& lines)
    : ranks_(ranks),
      server_(server),
      patience_(options.stall_timeout_ms),
      error_fd_(options.error_fd),
      lines_(lines),
      next_check_(WallClock::now() + std::min(patience_, most_between_checks)),
      blocked_since_(WallClock::now()) {}

void StartWatch::check() {
  // The ranks that the others wait for. Those that have spoken with the process manager are in MPI_Init.
  std::vector<std::uint32_t> missing;
  std::vector<int> processes = server_.process_ids().all_running();
  for (std::uint32_t rank = 0; rank < processes.size(); ++rank) {
    if (processes[rank] == 0) processes[rank] = server_.processes().leader_id(rank);
    if (ranks_.state_now(rank) == RankState::running && !server_.spoke(rank)) missing.push_back(rank);
  }
  // One alone may wait for its user.
  if (processes.size() == 1) missing.clear();
  const auto now = WallClock::now();
  next_check_ = now + std::min(patience_, most_between_checks);
  const bool sleeps = has_begun_ && stalls_.end() >= StallWatch::Finding::may_wake;
  stalls_.begin(processes);
  has_begun_ = true;
  if (!sleeps || missing.empty()) blocked_since_ = now;
  if (now - blocked_since_ < patience_) return;
  has_reported_ = true;
  const double seconds = std::chrono::duration<double>(now - blocked_since_).count();
  dprintf(
      error_fd_,
      "apenet: nothing has moved for %.1f s, and virtual time has not begun: %s neither passed MPI_Init nor "
      "enabled an endpoint; rank %u %s\n",
      seconds, (name_ranks(missing) + (missing.size() == 1 ? " has" : " have")).c_str(), missing.front(),
      describe_work(processes, missing.front(), lines_).c_str());
}

}  // namespace apenet
