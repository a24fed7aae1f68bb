#include "runtime/launch/stall_watch.hpp"

#include <algorithm>
#include <chrono>

#include "runtime/launch/host_thread.hpp"
#include "runtime/launch/host_waits.hpp"

namespace apenet {
namespace {

// A thread that polls a few times a second uses less CPU time than this. A thread that works but has to share
// the processor is found in state R.
constexpr std::int64_t least_share_per_mille = 10;

// A thread that has been found to contend more often than this is taken to wait for a lock that no thread
// will ever release.
constexpr std::uint32_t most_tries = 50;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

StallWatch::Finding finding_of(char state, int process_id, int thread_id) {
  const bool is_stopped = state == 'T' || state == 't';  // whoever has stopped it may let it go on
  if (state == 'R' || state == 'D' || is_stopped) return StallWatch::Finding::works;
  const SystemCall call = system_call(process_id, thread_id);
  if (has_time_limit(call)) return StallWatch::Finding::sleeps;
  return waits_for_thread(call) ? StallWatch::Finding::asleep : StallWatch::Finding::may_wake;
}

}  // namespace

void StallWatch::forget() {
  first_used_ns_.clear();
  last_used_ns_.clear();
  tries_.clear();
  came_.clear();
  simulation_.clear();
  is_library_.clear();
}

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

// Returns true if the thread waits for other threads and has run since the last look. Returns false for a
// thread that has been seen in the simulation, or that has been found to contend too often.
bool StallWatch::contends(const Thread& thread, std::uint64_t used_ns) {
  const auto [last, is_new] = last_used_ns_.try_emplace(thread.thread_id, used_ns);
  const bool has_run = is_new || last->second != used_ns;
  last->second = used_ns;
  if (thread.finding != Finding::asleep || !has_run || came_.contains(thread.thread_id)) return false;
  // A process's only thread is the one that the scheduler knows to wait.
  if (threads_of(thread.process_id).size() == 1 || is_in_simulation(thread)) {
    came_.insert(thread.thread_id);
    return false;
  }
  return ++tries_[thread.thread_id] <= most_tries;
}

bool StallWatch::is_library(const Thread& thread) {
  const auto [known, is_new] = is_library_.try_emplace(thread.thread_id, false);
  if (is_new) known->second = is_library_thread(thread.process_id, thread.thread_id);
  return known->second;
}

// Returns true if the thread sleeps at a word of the memory shared with the simulator: it waits for its turn
// or for the rank's ThreadLock, which is granted in order.
bool StallWatch::is_in_simulation(const Thread& thread) {
  const std::uint64_t word = system_call(thread.process_id, thread.thread_id).arguments[0];
  const auto holds = [word](const AddressRange& range) { return range.begin <= word && word < range.end; };
  std::vector<AddressRange>& ranges = simulation_[thread.process_id];
  if (std::none_of(ranges.begin(), ranges.end(), holds))
    ranges = mapped_ranges(thread.process_id, "/memfd:apenet (deleted)");
  return std::any_of(ranges.begin(), ranges.end(), holds);
}

StallWatch::Finding StallWatch::end() {
  threads_.clear();
  const std::int64_t passed_ns = now_ns() - began_ns_;
  for (auto& [thread_id, task] : look()) {
    const auto before = before_.find(thread_id);
    const std::uint64_t used_before = before == before_.end() ? 0 : before->second.used_ns;
    const auto used_ns = static_cast<std::int64_t>(task.used_ns - used_before);
    const std::uint64_t first_ns = first_used_ns_.emplace(thread_id, task.used_ns).first->second;
    if (task.thread.finding == Finding::sleeps && (first_ns != task.used_ns || is_library(task.thread)))
      task.thread.finding = Finding::may_wake;
    if (contends(task.thread, task.used_ns)) task.thread.finding = Finding::contends;
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
