#include "runtime/launch/host_timers.hpp"

#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string>

namespace apenet {
namespace {

bool has_signal(std::uint64_t signals, int signal) {
  return signal > 0 && signal <= 64 && (signals >> (signal - 1) & 1) != 0;
}

}  // namespace

std::uint64_t handled_signals(int process_id) {
  std::ifstream lines("/proc/" + std::to_string(process_id) + "/status");
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string key;
    std::uint64_t set = 0;
    if (fields >> key && key == "SigCgt:" && fields >> std::hex >> set) return set;
  }
  return 0;
}

bool has_timer(int process_id, std::int64_t alarm_ns, std::uint64_t awaited) {
  const std::uint64_t handled = handled_signals(process_id) | awaited;
  const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
  if (alarm_ns > now.count() && has_signal(handled, SIGALRM)) return true;
  std::ifstream lines("/proc/" + std::to_string(process_id) + "/timers");
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string key;
    int signal = 0;
    if (fields >> key >> signal && key == "signal:" && has_signal(handled, signal)) return true;
  }
  return false;
}

}  // namespace apenet
