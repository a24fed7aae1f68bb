#include "runtime/launch/affinity.hpp"

#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>

namespace apenet {

Affinity::Affinity() {
  sched_getaffinity(0, sizeof before_, &before_);
  const int here = sched_getcpu();
  CPU_ZERO(&core_);
  CPU_SET(here < 0 ? 0 : here, &core_);
  sched_setaffinity(0, sizeof core_, &core_);
}

Affinity::~Affinity() {
  sched_setaffinity(0, sizeof before_, &before_);
}

void Affinity::hold(std::uint32_t process_id) const {
  std::error_code error;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process_id) + "/task", error)) {
    const std::string name = task.path().filename().string();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    if (thread > 0) sched_setaffinity(thread, sizeof core_, &core_);
  }
}

}  // namespace apenet
