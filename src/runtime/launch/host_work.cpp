#include "runtime/launch/host_work.hpp"

#include <unistd.h>

#include <algorithm>

#include "runtime/launch/host_thread.hpp"

namespace apenet {
namespace {

using namespace std::chrono_literals;

constexpr auto host_work_interval = 100ms;
constexpr auto blocked_patience = 3s;
constexpr int patience_with_tracer = 10;  // a tracer multiplies the CPU time that a system call takes

struct Activity {
  std::int64_t cpu_ticks = 0;
  bool wants_to_run = false;  // or waits for a disk, or for one that has stopped it
  bool is_traced = false;     // by strace, a debugger
};

// R: runs, D: waits for a disk, T: stopped by a signal, t: stopped by its tracer.
bool wants_to_run(char state) {
  return state == 'R' || state == 'D' || state == 'T' || state == 't';
}

Activity activity_of(const std::vector<int>& groups) {
  Activity activity;
  for (const HostProcess& process : host_processes()) {
    if (std::find(groups.begin(), groups.end(), process.group_id) == groups.end()) continue;
    activity.cpu_ticks += process.cpu_ticks;
    activity.wants_to_run = activity.wants_to_run || wants_to_run(process.state);
    activity.is_traced = activity.is_traced || tracer_of(process.process_id) != 0;
  }
  return activity;
}

}  // namespace

bool HostWork::is_hopeless(const std::vector<int>& groups, std::chrono::milliseconds cpu_patience) {
  const auto now = WallClock::now();
  if (begun_ && now < next_check_) return false;
  next_check_ = now + host_work_interval;
  const Activity activity = activity_of(groups);
  // The total shrinks when a process ends, because its CPU time is no longer counted.
  const std::int64_t used = begun_ ? std::max<std::int64_t>(activity.cpu_ticks - cpu_ticks_, 0) : 0;
  if (!begun_ || used > 0 || activity.wants_to_run) moved_at_ = now;
  begun_ = true;
  cpu_ticks_ = activity.cpu_ticks;
  used_ticks_ += used;
  const std::chrono::milliseconds used_time(used_ticks_ * 1000 / sysconf(_SC_CLK_TCK));
  const auto patience = activity.is_traced ? cpu_patience * patience_with_tracer : cpu_patience;
  return used_time >= patience || now - moved_at_ >= blocked_patience;
}

}  // namespace apenet
