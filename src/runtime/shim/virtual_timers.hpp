// VirtualTimers: the process's timers, which are due at a virtual time.
//
// A timer is due at a time of the rank's clock, or when the process has used so much CPU time. Its signal is
// sent at the first point at which the clock has come so far: a sleep and a wait for MPI stop there, and each
// call that reads the clock or leaves a library checks. The handler then runs in the thread, as after any
// signal of the host, and with the same arguments.
//
// The host has each timer, too, disarmed. While a thread waits in the host for something that the simulator
// does not know (HostPace), the timer runs there, from the time that is left.
//
// docs/internals/timers.md states the rules.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <mutex>

#include "runtime/ipc/client.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/virtual_timer.hpp"

namespace apenet::shim {

class VirtualTimers {
 public:
  static constexpr std::size_t room = 256;
  static constexpr std::size_t itimers = 3;  // the first entries, by the number of setitimer()

  static VirtualTimers& of_process();

  // When virtual time begins: the timers that run in the host begin anew.
  void adopt(ipc::Client& client);

  // A new timer; nullptr if there is no room.
  [[nodiscard]] VirtualTimer* add(const VirtualTimer& timer);
  void drop(VirtualTimer& timer);
  // The timer of timer_create() or timerfd_create(); nullptr if it is none.
  [[nodiscard]] VirtualTimer* find(timer_t id);
  [[nodiscard]] VirtualTimer* find_file(int file);
  [[nodiscard]] bool has_files() const { return has_files_.load(std::memory_order_relaxed); }
  // Sets a timer, and returns what it was before. is_date: left_ps counts from the begin of virtual time.
  TimerSetting set(ipc::Client& client, VirtualTimer& timer, const TimerSetting& setting,
                   bool is_date = false);
  // The ends of a file that the program has not read. It has now.
  std::uint64_t take_ends(VirtualTimer& timer);
  [[nodiscard]] TimerSetting get(ipc::Client& client, VirtualTimer& timer);
  [[nodiscard]] VirtualTimer& itimer(int which) { return timers_[static_cast<std::size_t>(which)]; }

  // When the first timer that counts the rank's time is due, or a signal of another rank; never_ps: none
  // runs.
  [[nodiscard]] std::int64_t first_ps() const {
    const ipc::Client* const client = ipc::Client::known();
    const std::int64_t first_ps = first_ps_.load(std::memory_order_relaxed);
    return client == nullptr ? first_ps : std::min(first_ps, client->signal_ps());
  }
  // Whether one of those runs that tells by a signal or in a thread, not by a file only.
  [[nodiscard]] bool has_signals() const {
    const ipc::Client* const client = ipc::Client::known();
    return has_signals_.load(std::memory_order_relaxed) ||
           (client != nullptr && client->signal_ps() != VirtualTimer::never_ps);
  }
  // Sends the signals that are due by the rank's clock. Returns whether a handler has run in this thread;
  // stops after it if stops_at_handler. blocked: lets in all signals but these, or nullptr: those that the
  // thread lets in.
  bool fire(ipc::Client& client, bool stops_at_handler = false, const sigset_t* blocked = nullptr);

  // The signal that was sent last; 0: none.
  [[nodiscard]] int last_signal() const { return last_signal_; }
  // The calling thread sleeps until then, and then fires what is due. 0: it sleeps no more.
  void note_sleep(std::int64_t end_ps);

  // Call if another thread may wait while timers run.
  void keep_time(ipc::Client& client);

  // Before the process executes another program, which inherits the timers of setitimer() and the
  // descriptors: they run in the host from the time that is left. If its clocks are virtual (is_followed),
  // the timer of real time does not: it calls inherit(). And after that has failed.
  void leave(ipc::Client& client, bool is_followed);
  void take_back(ipc::Client& client);
  void inherit(ipc::Client& client, const ipc::LeftAlarm& alarm);

  // HostPace's.
  void begin_pace(ipc::Client& client);
  void end_pace(ipc::Client& client);
  void catch_up(ipc::Client& client);

 private:
  class Guard;
  void refresh(ipc::Client& client);
  VirtualTimer* find_due(ipc::Client& client);
  template <typename Is>
  VirtualTimer* find_where(Is is);
  [[nodiscard]] bool is_left_to_first_thread(const VirtualTimer& timer) const;
  void note_signal(const VirtualTimer& timer);
  bool pass_on_sent(ipc::Client& client, const VirtualTimer* timer, const sigset_t& blocked);
  void keep_time_alone(ipc::Client& client);
  void run_in_host(VirtualTimer& timer);
  void expect_early_signals(const sigset_t& blocked);
  std::int64_t take_from_host(VirtualTimer& timer, bool stops);
  template <typename Use>
  void for_each(Use use) {
    for (std::size_t i = 0; i < used_; ++i) {
      if (timers_[i].kind != TimerKind::none) use(timers_[i]);
    }
  }

  static constexpr std::array<VirtualTimer, room> begin() {
    std::array<VirtualTimer, room> timers;
    constexpr std::array<int, itimers> signals = {SIGALRM, SIGVTALRM, SIGPROF};
    for (std::size_t which = 0; which < itimers; ++which) {
      timers[which].kind = TimerKind::process;
      timers[which].is_cpu = which != 0;
      timers[which].host = static_cast<int>(which);
      timers[which].signal = signals[which];
    }
    return timers;
  }

  // In the processes that a rank starts, too, which adopt none.
  std::array<VirtualTimer, room> timers_ = begin();
  std::size_t used_ = itimers;
  std::atomic<std::int64_t> first_ps_{VirtualTimer::never_ps};
  std::atomic<bool> has_signals_{false};
  std::mutex mutex_;
  bool has_adopted_ = false;
  std::atomic<bool> begins_threads_{false};  // a timer of TimerKind::thread has been set
  std::atomic<bool> has_files_{false};       // there has been one of TimerKind::file
  std::atomic<int> last_signal_{0};
  std::atomic<std::int64_t> first_thread_end_ps_{0};  // note_sleep() of the first thread
  std::atomic<std::uint32_t> changes_{0};             // changes of the first time at which a timer is due
  std::atomic<bool> is_kept_{false};                  // a thread of the shim keeps the timers' time
  std::atomic<pthread_t> keeper_{};                   // that thread
  // The waits in the host at this moment, and when the first of them began.
  std::uint32_t paces_ = 0;
  std::int64_t pace_began_ns_ = 0;
  std::int64_t pace_began_ps_ = 0;
};

// The timers of the process run in the host while this object lives: around a wait there that they may
// interrupt. What they do meanwhile has taken as long in virtual time.
//
// In a process with several threads another one keeps the timers' time meanwhile
// (VirtualTimers::keep_time()).
class HostPace {
 public:
  enum class Ender : std::uint8_t { thread, any };  // what ends the wait, besides a signal
  // client: nullptr if the process has the host's time.
  explicit HostPace(ipc::Client* client, Ender ender = Ender::any);
  ~HostPace();
  HostPace(const HostPace&) = delete;
  HostPace& operator=(const HostPace&) = delete;

 private:
  friend void leave_pace_for(std::uintptr_t stack_end);

  ipc::Client* client_ = nullptr;  // client of a wait beside which timers run
  std::uintptr_t frame_ = 0;       // where the stack was when the wait began
};

// For HostPace; nullptr also if no timer runs.
inline ipc::Client* pacing_client() {
  if (VirtualTimers::of_process().first_ps() == VirtualTimer::never_ps || host_calls > 0) return nullptr;
  return ipc::Client::known();
}

// The same of a call that waits for the file, or writes so many bytes to it: nullptr also if it does not
// wait. The host may take long for any call, and a timer must not ring because of that.
[[nodiscard]] ipc::Client* pacing_reader(int file, int flags = 0);
[[nodiscard]] ipc::Client* pacing_writer(int file, std::size_t bytes);
// Opening waits for the other end of a fifo, and for some devices.
[[nodiscard]] ipc::Client* pacing_opener(int folder, const char* path);

// In a handler of a signal that has interrupted such a wait: sets the clock to the time of the signal.
extern constinit thread_local bool is_paced __attribute__((tls_model("initial-exec")));
void catch_up_pace(ipc::Client& client);
// In such a handler, which jumps to a function whose stack ends there, perhaps one of its own: the wait is
// over if the jump leaves it.
void leave_pace_for(std::uintptr_t stack_end);

}  // namespace apenet::shim
