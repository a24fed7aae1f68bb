#include "runtime/launch/stall_watch.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/launch/host_thread.hpp"

namespace apenet {
namespace {

// A thread that polls a few times a second uses less CPU time than this. A thread that works but has to share
// the processor is found in state R, and does not wait in between.
constexpr std::int64_t least_share_per_mille = 10;
// The same of a thread that waits in the simulation, where it checks the processes that it waits for.
constexpr std::int64_t least_share_in_simulation_per_mille = 100;
// It wakes from time to time, so its share shows only over a longer time than that of two checks.
constexpr std::int64_t span_ns = 1'000'000'000;

// A thread that has been found to contend more often than this is taken to wait for a lock that no thread
// will ever release.
constexpr std::uint32_t most_tries = 50;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

StallWatch::Finding finding_of(char state, int process_id, int thread_id) {
  if (state == 'R' || state == 'D' || state == 'T' || state == 't') return StallWatch::Finding::works;
  const SystemCall call = system_call(process_id, thread_id);
  if (has_time_limit(call)) return StallWatch::Finding::sleeps;
  return waits_for_thread(call) ? StallWatch::Finding::blocked : StallWatch::Finding::may_wake;
}

}  // namespace

void StallWatch::forget() {
  spans_.clear();
  first_used_ns_.clear();
  last_used_ns_.clear();
  waits_.clear();
  tries_.clear();
  came_.clear();
  simulation_.clear();
  library_threads_ = {};
}

// Whoever has stopped a rank may let it go on. A process that a rank has started mostly stops itself, or is
// traced by another one of the run.
bool StallWatch::is_stopped_by_run(int process_id, char state,
                                   const std::map<int, std::uint32_t>& family) const {
  if (state == 't') return family.contains(tracer_of(process_id));
  return state == 'T' && process_ids_.at(family.at(process_id)) != process_id;
}

std::map<int, StallWatch::Task> StallWatch::read_tasks() const {
  std::map<int, Task> tasks;
  const std::map<int, std::uint32_t> family = families(process_ids_);
  for (const auto& [process_id, rank] : family) {
    for (const int thread_id : threads_of(process_id)) {
      const auto state = thread_state(process_id, thread_id);
      if (!state || state->state == 'Z' || state->state == 'X') continue;
      const bool is_stopped = is_stopped_by_run(process_id, state->state, family);
      const Finding finding =
          is_stopped ? Finding::may_wake : finding_of(state->state, process_id, thread_id);
      tasks[thread_id] = {{process_id, thread_id, state->name, rank, finding},
                          state->used_ns,
                          is_stopped ? 'T' : state->state};
    }
  }
  return tasks;
}

void StallWatch::begin(const std::vector<int>& process_ids, std::vector<std::uint32_t> suspended) {
  process_ids_ = process_ids;
  suspended_ = std::move(suspended);
  before_ = read_tasks();
  began_ns_ = now_ns();
}

// Returns true if the thread waits for other threads and has run since the last check. Returns false for a
// thread that has been seen in the simulation, or that has been found to contend too often.
bool StallWatch::contends(const Thread& thread, std::uint64_t used_ns) {
  const auto [last, is_new] = last_used_ns_.try_emplace(thread.thread_id, used_ns);
  const bool has_run = is_new || last->second != used_ns;
  last->second = used_ns;
  if (thread.finding != Finding::blocked || !has_run || came_.contains(thread.thread_id)) return false;
  // A process's only thread is the one that the scheduler knows to wait.
  if (threads_of(thread.process_id).size() == 1 || is_in_simulation(thread)) {
    came_.insert(thread.thread_id);
    return false;
  }
  return ++tries_[thread.thread_id] <= most_tries;
}

bool StallWatch::uses_processor(int thread_id, std::uint64_t used_ns, std::int64_t share_per_mille,
                                bool uses_now) {
  const std::int64_t now = now_ns();
  const auto [entry, is_new] = spans_.try_emplace(thread_id, Span{.since_ns = now, .used_ns = used_ns});
  Span& span = entry->second;
  if (const std::int64_t passed_ns = now - span.since_ns; passed_ns >= span_ns) {
    const auto used_since_ns = static_cast<std::int64_t>(used_ns - span.used_ns);
    span = {
        .since_ns = now, .used_ns = used_ns, .worked = used_since_ns * 1000 >= passed_ns * share_per_mille};
  }
  return uses_now && span.worked;
}

// Returns true if the thread uses little CPU time, and has waited since it was last found so: it wakes from
// time to time to check something. On a busy host it is often found before it gets a processor.
bool StallWatch::only_checks(const Thread& thread) {
  const auto span = spans_.find(thread.thread_id);
  const auto pulse = pulse_of(thread.process_id, thread.thread_id);
  if (span == spans_.end() || span->second.worked || !pulse) return false;
  const auto [entry, is_new] = waits_.try_emplace(thread.thread_id, pulse->waits);
  return std::exchange(entry->second, pulse->waits) != pulse->waits && !is_new;
}

// Returns true if the thread sleeps at a word of the memory shared with the simulator: it waits for a grant
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
  for (auto& [thread_id, task] : read_tasks()) {
    const auto before = before_.find(thread_id);
    const std::uint64_t used_before = before == before_.end() ? 0 : before->second.used_ns;
    const auto used_ns = static_cast<std::int64_t>(task.used_ns - used_before);
    const std::uint64_t first_ns = first_used_ns_.emplace(thread_id, task.used_ns).first->second;
    const bool is_suspended =
        std::find(suspended_.begin(), suspended_.end(), task.thread.rank) != suspended_.end();
    if (task.thread.finding == Finding::sleeps) {
      const bool is_repeated = first_ns != task.used_ns ||
                               library_threads_.contains(task.thread.process_id, task.thread.thread_id);
      if (!is_in_simulation(task.thread)) {
        if (is_repeated) task.thread.finding = Finding::may_wake;
      } else if (!is_suspended) {
        task.thread.finding = Finding::blocked;
      }
    }
    if (contends(task.thread, task.used_ns)) task.thread.finding = Finding::contends;
    const bool waits_here = task.thread.finding == Finding::blocked && is_in_simulation(task.thread);
    const std::int64_t share = waits_here ? least_share_in_simulation_per_mille : least_share_per_mille;
    if (uses_processor(thread_id, task.used_ns, share, used_ns * 1000 >= passed_ns * share)) {
      task.thread.finding = Finding::works;
    } else if (task.state == 'R' && only_checks(task.thread)) {
      task.thread.finding = Finding::may_wake;
    }
    if (task.thread.finding != Finding::blocked) threads_.push_back(task.thread);
  }
  std::stable_sort(threads_.begin(), threads_.end(), [](const Thread& a, const Thread& b) {
    if (a.finding != b.finding) return a.finding < b.finding;
    if (a.rank != b.rank) return a.rank < b.rank;
    return a.thread_id < b.thread_id;
  });
  return threads_.empty() ? Finding::blocked : threads_.front().finding;
}

}  // namespace apenet
