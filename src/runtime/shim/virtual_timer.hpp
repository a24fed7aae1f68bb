// VirtualTimer: what a timer of the process is and when it is due.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>

namespace apenet::shim {

// The time to the next end, 0 if the timer does not run, and between two ends, 0 if there is only one.
struct TimerSetting {
  std::int64_t left_ps = 0;
  std::int64_t interval_ps = 0;
};

enum class TimerKind : std::uint8_t {
  none,
  process,  // a timer of setitimer(): the signal goes to the process
  signal,   // timers of timer_create(): the signal goes to the process, or to a thread
  thread,   // begins a thread
  silent,   // nobody is told
  file,     // a timer of timerfd_create()
};

struct VirtualTimer {
  static constexpr std::int64_t never_ps = INT64_MAX;

  TimerKind kind = TimerKind::none;
  bool is_cpu = false;  // counts CPU time
  int signal = 0;
  int host = 0;               // in the host: which timer of setitimer(), or which descriptor
  timer_t id = nullptr;       // the same of timer_create()
  std::int64_t base_s = 0;    // base of the clock to which its dates refer
  std::int32_t receiver = 0;  // the thread of the host that gets the signal; 0: any
  sigval value{};
  void (*routine)(sigval) = nullptr;  // TimerKind::thread
  std::size_t stack_bytes = 0;        // the same; 0: as usual
  TimerSetting early;                 // as set while the process had the host's time
  std::int64_t due_ps = never_ps;     // since virtual time began, or of CPU time
  std::int64_t interval_ps = 0;
  std::uint64_t ends = 0;   // that the program has not read: TimerKind::file
  int overrun = 0;          // overruns of the last signal
  int missed = 0;           // overruns of the next one
  bool is_queued = false;   // its signal has been sent, and may be pending
  bool is_in_host = false;  // it runs in the host meanwhile, beside a HostPace
};

}  // namespace apenet::shim
