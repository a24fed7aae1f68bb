#include "runtime/launch/stall_watch.hpp"

#include <algorithm>
#include <chrono>

#include "runtime/launch/host_thread.hpp"

namespace apenet {
namespace {

// A thread that polls a few times a second uses less CPU time than this. A thread that works but has to share
// the processor is found in state R.
constexpr std::int64_t least_share_per_mille = 10;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

StallWatch::Finding finding_of(char state, int process_id, int thread_id) {
  if (state == 'R' || state == 'D') return StallWatch::Finding::works;
  const SystemCall call = system_call(process_id, thread_id);
  if (has_time_limit(call)) return StallWatch::Finding::sleeps;
  return waits_for_thread(call) ? StallWatch::Finding::asleep : StallWatch::Finding::may_wake;
}

}  // namespace

std::map<int, StallWatch::Task> StallWatch::look() const {
  std::map<int, Task> tasks;
  for (const auto& [process_id, rank] : families(process_ids_)) {
    for (const int thread_id : threads_of(process_id)) {
      const auto state = thread_state(process_id, thread_id);
      if (!state || state->state == 'Z' || state->state == 'X') continue;
      const Finding finding = finding_of(state->state, process_id, thread_id);
      tasks[thread_id] = {{process_id, thread_id, state->name, rank, finding}, state->used_ns};
    }
  }
  return tasks;
}

void StallWatch::begin(const std::vector<int>& process_ids) {
  process_ids_ = process_ids;
  before_ = look();
  began_ns_ = now_ns();
}

StallWatch::Finding StallWatch::end() {
  threads_.clear();
  const std::int64_t passed_ns = now_ns() - began_ns_;
  for (auto& [thread_id, task] : look()) {
    const auto before = before_.find(thread_id);
    const std::uint64_t used_before = before == before_.end() ? 0 : before->second.used_ns;
    const auto used_ns = static_cast<std::int64_t>(task.used_ns - used_before);
    const std::uint64_t first_ns = first_used_ns_.emplace(thread_id, task.used_ns).first->second;
    if (task.thread.finding == Finding::sleeps && first_ns != task.used_ns)
      task.thread.finding = Finding::may_wake;
    if (used_ns * 1000 >= passed_ns * least_share_per_mille) task.thread.finding = Finding::works;
    if (task.thread.finding != Finding::asleep) threads_.push_back(task.thread);
  }
  std::stable_sort(threads_.begin(), threads_.end(), [](const Thread& a, const Thread& b) {
    if (a.finding != b.finding) return a.finding < b.finding;
    if (a.rank != b.rank) return a.rank < b.rank;
    return a.thread_id < b.thread_id;
  });
  return threads_.empty() ? Finding::asleep : threads_.front().finding;
}

}  // namespace apenet
