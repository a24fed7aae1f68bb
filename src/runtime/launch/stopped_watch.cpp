#include "runtime/launch/stopped_watch.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>
#include <vector>

#include "runtime/launch/host_thread.hpp"
#include "runtime/scheduler/rank_names.hpp"

namespace apenet {

void StoppedWatch::check() {
  const auto now = WallClock::now();
  if (has_reported_ || now < next_check_) return;
  next_check_ = now + patience_;
  std::set<std::uint32_t> found = stopped();
  std::vector<std::uint32_t> still;
  std::set_intersection(before_.begin(), before_.end(), found.begin(), found.end(),
                        std::back_inserter(still));
  before_ = std::move(found);
  if (still.empty()) return;
  has_reported_ = true;
  const bool is_one = still.size() == 1;
  dprintf(error_fd_,
          "apenet: %s %s stopped by a signal, and SIGCONT would let %s go on; the run waits for %s\n",
          name_ranks(still).c_str(), is_one ? "is" : "are", is_one ? "it" : "them", is_one ? "it" : "them");
}

std::set<std::uint32_t> StoppedWatch::stopped() const {
  std::set<std::uint32_t> ranks;
  std::vector<int> processes = server_.process_ids().all_running();
  for (std::uint32_t rank = 0; rank < processes.size(); ++rank) {
    int process_id = processes[rank];
    if (process_id == 0 && !server_.processes().is_leaderless(rank))
      process_id = server_.processes().leader_id(rank);
    if (process_id == 0) continue;
    const auto state = thread_state(process_id, process_id);
    if (state && state->state == 'T') ranks.insert(rank);
  }
  return ranks;
}

}  // namespace apenet
