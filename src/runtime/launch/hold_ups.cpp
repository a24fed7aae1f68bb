#include "runtime/launch/hold_ups.hpp"

#include <cstdio>

#include "runtime/launch/host_thread.hpp"

namespace apenet {

void HoldUps::note_busy() {
  if (told_) return;
  const auto now = WallClock::now();
  if (!busy_since_) busy_since_ = now;
  if (now - *busy_since_ < notice_) return;
  const std::vector<int> processes = scheduler_.process_ids();
  std::vector<std::uint32_t> busy;
  for (std::uint32_t rank = 0; rank < processes.size(); ++rank) {
    if (scheduler_.wait_of(rank) == ipc::Wait::running) busy.push_back(rank);
  }
  if (busy.empty()) return;
  told_ = true;
  const std::string more =
      busy.size() > 1 ? " (as have " + std::to_string(busy.size() - 1) + " more)" : std::string{};
  dprintf(error_fd_,
          "apenet: rank %u has been busy in the host for %.1f s%s: it %s; virtual time waits for it\n",
          busy.front(), std::chrono::duration<double>(now - *busy_since_).count(), more.c_str(),
          describe_work(processes, busy.front()).c_str());
}

void HoldUps::leave_out_sleepers(int launcher_id) {
  if (!busy_since_) return;
  const std::vector<std::uint32_t> ranks = scheduler_.held_up_by();
  if (ranks.empty() || !sleep_.are_asleep(ranks, scheduler_.process_ids(), launcher_id)) return;
  if (scheduler_.leave_out(ranks, [&] { return sleep_.still_asleep(ranks); })) sleep_.note_left_out(ranks);
}

bool HoldUps::waits_for_absent() {
  const std::vector<std::uint32_t> ranks = scheduler_.left_out();
  return !ranks.empty() && (scheduler_.all_are_left_out() || !sleep_.still_asleep(ranks));
}

}  // namespace apenet
