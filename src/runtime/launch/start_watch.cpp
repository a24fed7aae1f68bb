#include "runtime/launch/start_watch.hpp"

#include <algorithm>
#include <cstdio>

#include "runtime/launch/host_thread.hpp"
#include "runtime/scheduler/rank_names.hpp"

namespace apenet {
namespace {

constexpr std::chrono::milliseconds most_between_looks{1000};

}  // namespace

StartWatch::StartWatch(const SessionOptions& options)
    : patience_(options.stall_timeout_ms),
      error_fd_(options.error_fd),
      next_look_(WallClock::now() + std::min(patience_, most_between_looks)),
      asleep_since_(WallClock::now()) {}

void StartWatch::look(const std::vector<std::uint32_t>& missing, const std::vector<int>& processes) {
  const auto now = WallClock::now();
  next_look_ = now + std::min(patience_, most_between_looks);
  const bool sleeps = has_begun_ && stalls_.end() >= StallWatch::Finding::may_wake;
  stalls_.begin(processes);
  has_begun_ = true;
  if (!sleeps || missing.empty()) asleep_since_ = now;
  if (now - asleep_since_ < patience_) return;
  told_ = true;
  const double seconds = std::chrono::duration<double>(now - asleep_since_).count();
  dprintf(
      error_fd_,
      "apenet: nothing has moved for %.1f s, and virtual time has not begun: %s neither passed MPI_Init nor "
      "enabled an endpoint; rank %u %s\n",
      seconds, (name_ranks(missing) + (missing.size() == 1 ? " has" : " have")).c_str(), missing.front(),
      describe_work(processes, missing.front()).c_str());
}

}  // namespace apenet
