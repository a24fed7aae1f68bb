#include "runtime/launch/host_work.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace apenet {
namespace {

using namespace std::chrono_literals;

constexpr auto look_interval = 100ms;
constexpr auto blocked_patience = 3s;

struct Activity {
  std::int64_t cpu_ticks = 0;
  bool wants_to_run = false;  // or waits for a disk
};

Activity activity_of(const std::vector<int>& groups) {
  Activity activity;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string text;
    std::getline(file, text);
    const std::size_t name_end = text.rfind(')');  // the program name may contain any character
    if (name_end == std::string::npos) continue;
    std::istringstream fields(text.substr(name_end + 1));
    char state = '?';
    int parent = 0;
    int group = 0;
    fields >> state >> parent >> group;
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) continue;
    std::string skipped;  // the fields from session to cmajflt
    for (int i = 0; i < 8; ++i) fields >> skipped;
    std::int64_t user_ticks = 0;
    std::int64_t system_ticks = 0;
    fields >> user_ticks >> system_ticks;
    activity.cpu_ticks += user_ticks + system_ticks;
    activity.wants_to_run = activity.wants_to_run || state == 'R' || state == 'D';
  }
  return activity;
}

}  // namespace

bool HostWork::is_hopeless(const std::vector<int>& groups, std::chrono::milliseconds cpu_patience) {
  const auto now = WallClock::now();
  if (begun_ && now < next_look_) return false;
  next_look_ = now + look_interval;
  const Activity activity = activity_of(groups);
  // The total shrinks when a process ends, because its CPU time is no longer counted.
  const std::int64_t used = begun_ ? std::max<std::int64_t>(activity.cpu_ticks - cpu_ticks_, 0) : 0;
  if (!begun_ || used > 0 || activity.wants_to_run) moved_at_ = now;
  begun_ = true;
  cpu_ticks_ = activity.cpu_ticks;
  used_ticks_ += used;
  const std::chrono::milliseconds used_time(used_ticks_ * 1000 / sysconf(_SC_CLK_TCK));
  return used_time >= cpu_patience || now - moved_at_ >= blocked_patience;
}

}  // namespace apenet
