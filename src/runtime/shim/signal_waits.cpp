// Waits for a signal. If a timer of the process runs, virtual time goes on to its end, and that of a process
// with one thread to the wait's limit; processes that act in the order of this one send it as an action. A
// process with children that act in no order waits in the host, where they work.
#include "runtime/shim/signal_waits.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/program_memory.hpp"
#include "runtime/ipc/single_threaded.hpp"
#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/deadlines.hpp"
#include "runtime/shim/family.hpp"
#include "runtime/shim/ordered_files.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/signal_gate.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {
namespace {

// The client if the process may move its clock to the end of a timer.
ipc::Client* waiting_client() {
  ipc::Client* client = clock_client();
  if (client == nullptr || VirtualTimers::of_process().first_ps() == VirtualTimer::never_ps) return nullptr;
  return has_children_outside() ? nullptr : client;
}

bool is_handled(const struct sigaction& handling) {
  return handling.sa_handler != SIG_DFL && handling.sa_handler != SIG_IGN;
}

// The C library passes this much of a set.
bool is_set(const sigset_t* set) {
  return ipc::is_readable(set, sizeof(std::uint64_t));
}

bool has_handler(int signal) {
  struct sigaction handling {};
  return sigaction(signal, nullptr, &handling) == 0 && is_handled(handling);
}

}  // namespace

sigset_t opposite(const sigset_t& set) {
  sigset_t result;
  sigfillset(&result);
  for (int signal = 1; signal < NSIG; ++signal) {
    if (sigismember(&set, signal) == 1) sigdelset(&result, signal);
  }
  return result;
}

bool has_interrupting_handler(int signal) {
  struct sigaction handling {};
  sigaction(signal, nullptr, &handling);
  return is_handled(handling) && (handling.sa_flags & SA_RESTART) == 0;
}

// SIGHUP is not among them: UCX, which MPICH loads, has such a handler in each program.
bool has_interrupting_handler() {
  constexpr std::array signals = {SIGALRM, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGCHLD};
  return std::any_of(signals.begin(), signals.end(),
                     [](int signal) { return has_interrupting_handler(signal); });
}

bool sleep_to_timer(ipc::Client& client, std::int64_t most_ps, const sigset_t& blocked) {
  VirtualTimers& timers = VirtualTimers::of_process();
  const sigset_t lets_in = opposite(blocked);
  const SignalGate gate(&lets_in);
  // The first may be due already by this thread's time, but not by the rank's.
  const std::int64_t left_ps = std::max(timers.first_ps() - now_ps(client), ps_per_ns);
  const std::int64_t ps = std::min(most_ps, left_ps);
  OutsideWait outside(client, ps);
  ipc::blocked_in_wait = &blocked;
  const std::int64_t rest_ps = client.sleep(ps);
  ipc::blocked_in_wait = nullptr;
  outside.pass(rest_ps);
  if (client.has_due_timer() && timers.fire(client, true, &blocked)) return true;
  // The order tells of a signal a moment before the host sends it. Without one, another thread may have sent
  // it.
  constexpr std::int64_t moment_ns = 100'000'000;
  return SignalGate::let_in(blocked, rest_ps > 0 && client.ordered() != nullptr ? moment_ns : 0);
}

SignalWait await_signal(ipc::OrderedThread& own, const void* object, std::int64_t deadline_ps,
                        ipc::HostReadiness* readiness, bool restarts, const sigset_t* blocked) {
  ipc::ThreadOrder& order = thread_order();
  ipc::Client* const client = ipc::Client::attached();
  VirtualTimers& timers = VirtualTimers::of_process();
  // In a process with several threads the first one takes the signals of timers, if it does not block them.
  const bool takes_signals = ipc::is_single_threaded() || ipc::own_thread_id() == getpid();
  const std::int64_t due_ps = client != nullptr && takes_signals ? timers.first_ps() : VirtualTimer::never_ps;
  const bool has_timer = due_ps != VirtualTimer::never_ps;
  const std::int64_t until_ps = has_timer ? std::min(deadline_ps, order_deadline_ps(due_ps)) : deadline_ps;
  if (has_timer) timers.note_sleep(due_ps);
  ipc::blocked_in_wait = blocked;
  const bool may_pass = restarts && blocked == nullptr;
  const ipc::WaitEnds ends = may_pass ? ipc::WaitEnds::by_final_signal : ipc::WaitEnds::by_signal;
  const ipc::Woken woken = order.block(own, object, until_ps, nullptr, ends, readiness);
  ipc::blocked_in_wait = nullptr;
  const bool has_passed = woken == ipc::Woken::timed_out;
  const bool is_over = has_passed && own.key.clock_ps >= deadline_ps;
  const int ended_by = own.ended_by;
  // Handlers run outside the action: they may leave it by a jump.
  const auto outside_action = [&](auto run) {
    order.leave(own, !is_in_call());
    const bool has_run = run();
    order.enter(own);
    return has_run;
  };
  if (has_passed && client != nullptr) client->pass_until_ps(own.key.clock_ps);
  const bool has_handled = client != nullptr && client->has_due_timer() &&
                           outside_action([&] { return timers.fire(*client, true, blocked); });
  if (has_timer) timers.note_sleep(0);
  if (has_handled) {
    const bool is_final = has_interrupting_handler(timers.last_signal());
    return restarts && !is_final ? SignalWait::goes_on : SignalWait::interrupted;
  }
  if (has_passed) return is_over ? SignalWait::timed_out : SignalWait::goes_on;
  if (woken == ipc::Woken::signalled) return SignalWait::woken;
  if (woken != ipc::Woken::interrupted) return SignalWait::of_host;
  // The order tells of a signal a moment before the host sends it.
  constexpr std::int64_t moment_ns = 100'000'000;
  if (blocked != nullptr && !outside_action([&] { return SignalGate::let_in(*blocked, moment_ns); }))
    return SignalWait::goes_on;
  const bool is_final = ended_by != 0 ? has_interrupting_handler(ended_by) : has_interrupting_handler();
  return restarts && !is_final ? SignalWait::goes_on : SignalWait::interrupted;
}

namespace {

// Waits until a handler has run that is not in `blocked`. Requires that a timer runs.
int suspend(const sigset_t& blocked) {
  const sigset_t lets_in = opposite(blocked);
  const SignalGate gate(&lets_in);
  bool is_over = SignalGate::let_in(blocked);
  while (!is_over) {
    if (ipc::Client* client = waiting_client()) {
      is_over = sleep_to_timer(*client, ipc::end_of_time_ps, blocked);
    } else {
      const HostPace pace(clock_client());
      SignalGate::await(blocked);
      is_over = true;
    }
  }
  errno = EINTR;
  return -1;
}

// The same without a timer, beside processes that act in the order of this one and may send the signal.
// Returns false if it comes from the host.
bool suspend_in_order(const sigset_t& blocked) {
  ipc::Client* const client = clock_client();
  if (client == nullptr || !thread_order().has_processes() || !ipc::is_single_threaded()) return false;
  pollfd none{.fd = -1, .events = 0, .revents = 0};
  const OrderedFiles wait({&none, 1}, ipc::OrderedThread::no_deadline_ps, OrderedFiles::Use::check, &blocked);
  if (wait.outcome() != OrderedFiles::Outcome::interrupted) return false;
  errno = EINTR;
  return true;
}

// Whether a signal of the set is pending. For a process with one thread.
class PendingSignals final : public ipc::HostReadiness {
 public:
  explicit PendingSignals(const sigset_t& set) : set_(set) {}
  [[nodiscard]] bool is_there() override {
    sigset_t pending;
    sigpending(&pending);
    sigandset(&pending, &pending, &set_);
    return sigisemptyset(&pending) == 0;
  }

 private:
  const sigset_t& set_;
};

// The thread if processes that act in its order may send it a signal of the set, and none that comes
// meanwhile would go to its handler instead.
ipc::OrderedThread* receiver_in_order(const sigset_t& set) {
  if (!thread_order().has_processes() || !ipc::is_single_threaded() || has_children_outside()) return nullptr;
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  for (int signal = 1; signal < NSIG; ++signal) {
    if (sigismember(&set, signal) == 1 && sigismember(&blocked, signal) == 0 && has_handler(signal))
      return nullptr;
  }
  return ordered_thread();
}

SignalWait await_in_order(ipc::OrderedThread& own, const sigset_t& set, std::int64_t until_ps) {
  ipc::ThreadOrder& order = thread_order();
  PendingSignals pending(set);
  SignalWait end = SignalWait::woken;
  order.enter(own);
  while (!pending.is_there() && (end == SignalWait::woken || end == SignalWait::goes_on))
    end = await_signal(own, order.files(), until_ps, &pending, false);
  order.leave(own, !is_in_call());
  return end;
}

}  // namespace

APENET_EXPORT int pause() {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  if (pacing_client() != nullptr) return suspend(blocked);
  return suspend_in_order(blocked) ? -1 : next<int (*)()>("pause")();
}

APENET_EXPORT int sigsuspend(const sigset_t* blocked) {
  static const auto real = next<int (*)(const sigset_t*)>("sigsuspend");
  if (!is_set(blocked)) return real(blocked);
  if (pacing_client() != nullptr) return suspend(*blocked);
  return suspend_in_order(*blocked) ? -1 : real(blocked);
}

APENET_EXPORT int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* timeout) {
  static const auto real = next<int (*)(const sigset_t*, siginfo_t*, const timespec*)>("sigtimedwait");
  ipc::Client* client = clock_client();
  const bool is_given = is_set(set) && (timeout == nullptr || is_valid(timeout));
  if (client == nullptr || !is_given) return real(set, info, timeout);
  const std::int64_t began_ps = now_ps(*client);
  const std::int64_t most_ps = timeout == nullptr ? ipc::end_of_time_ps : to_ps(*timeout);
  constexpr timespec none{};
  if (ipc::OrderedThread* const own = most_ps > 0 ? receiver_in_order(*set) : nullptr; own != nullptr) {
    const std::int64_t until_ps =
        timeout == nullptr ? ipc::OrderedThread::no_deadline_ps
                           : order_deadline_ps(began_ps + std::min(most_ps, ipc::end_of_time_ps - began_ps));
    const SignalWait end = await_in_order(*own, *set, until_ps);
    if (end == SignalWait::interrupted) {
      errno = EINTR;
      return -1;
    }
    if (end != SignalWait::of_host) return real(set, info, &none);
  }
  const auto left_ps = [&] { return most_ps - (now_ps(*client) - began_ps); };
  const bool has_limit = timeout != nullptr && ipc::is_single_threaded();
  const auto sleeps = [&] {
    const VirtualTimers& timers = VirtualTimers::of_process();
    const bool has_timer = waiting_client() != nullptr && timers.first_ps() - began_ps <= most_ps;
    return has_timer || (has_limit && !client->progress().leaves() && !has_children());
  };
  while (sleeps()) {
    // Those for which it waits do not come to their handlers.
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    sigset_t lets_in = opposite(blocked);
    sigorset(&lets_in, &lets_in, set);
    sigorset(&blocked, &blocked, set);
    const SignalGate gate(&lets_in);
    const int signal = real(set, info, &none);
    if (signal >= 0 || errno != EAGAIN || left_ps() <= 0) return signal;
    if (sleep_to_timer(*client, left_ps(), blocked)) {
      errno = EINTR;
      return -1;
    }
  }
  const HostPace pace(client);
  if (timeout == nullptr) return real(set, info, nullptr);
  const timespec left = to_timespec(std::max<std::int64_t>(left_ps(), 0));
  return wait_for(
      *client, left_ps(), [](int result) { return result < 0 && errno == EAGAIN; },
      [&] { return real(set, info, &left); });
}

APENET_EXPORT int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  return sigtimedwait(set, info, nullptr);
}

APENET_EXPORT int sigwait(const sigset_t* set, int* signal) {
  int result = -1;
  do {
    result = sigtimedwait(set, nullptr, nullptr);
  } while (result < 0 && errno == EINTR);
  if (result < 0) return errno;
  *signal = result;
  return 0;
}

}  // namespace apenet::shim
