// Waits for child processes: the time limits and checks of any wait in the host (outside_waits.hpp), and what
// the end of a child says of the program that it was (process_images.hpp).
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <utility>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/program_memory.hpp"
#include "runtime/ipc/single_threaded.hpp"
#include "runtime/shim/child_processes.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/process_images.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/signal_waits.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {
namespace {

using ipc::OrderedThread;
using ipc::ThreadOrder;

constexpr pid_t any_child = -1;

// With others, the host refuses the wait at once.
constexpr int flags_of_all =
    WNOHANG | WUNTRACED | WCONTINUED | __WNOTHREAD | __WALL | static_cast<int>(__WCLONE);
constexpr int flags_of_waitid = flags_of_all | WEXITED | WNOWAIT;

void note_end_of_child(int flags) {
  if ((flags & WNOHANG) != 0) note_found(OutsideCause::child, 1);
  forget_check();  // it may have made what the rank checks next
}

void note_waited(pid_t child, int status, int flags) {
  if (child == 0 && (flags & WNOHANG) != 0) note_check(OutsideCause::child, 1);
  if (child > 0) note_end_of_child(flags);
  if (child > 0 && (WIFEXITED(status) || WIFSIGNALED(status)))
    note_reaped(child, flags, WIFEXITED(status) && WEXITSTATUS(status) != loader_failed);
}

// Passes the result of a wait that has written so.
template <typename Object>
pid_t reported(pid_t result, Object* to_program, const Object& from) {
  if (ipc::copy_out_if_wanted(to_program, from)) return result;
  errno = EFAULT;
  return -1;
}

// Whether the program has heard of the end of a child that has ended, if it wants to: it may not check again.
bool may_have_been_told() {
  struct sigaction handling {};
  sigaction(SIGCHLD, nullptr, &handling);
  if (handling.sa_handler == SIG_DFL || handling.sa_handler == SIG_IGN) return false;
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, SIGCHLD) == 0;
}

// A child that has ended in the host and is in no order of this process; 0: none has.
pid_t ended_outside(pid_t process) {
  siginfo_t info{};
  const bool is_any = process == any_child;
  // The fourth argument is a number here.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const auto* const options = reinterpret_cast<const void*>(std::uintptr_t{WEXITED | WNOHANG | WNOWAIT});
  const int error = ipc::host_call(SYS_waitid, is_any ? P_ALL : P_PID, is_any ? 0 : process,
                                   reinterpret_cast<std::uint64_t>(&info), options);
  if (error != 0 || info.si_pid == 0) return 0;
  return thread_order().acts_in_order(static_cast<std::uint32_t>(info.si_pid)) ? 0 : info.si_pid;
}

// A child that a signal has stopped, or let go on, if the wait is for such, too; 0: none has.
pid_t stopped_or_continued(pid_t process, int flags) {
  const int wanted = flags & (WUNTRACED | WCONTINUED);
  if (wanted == 0) return 0;
  await_stops();
  siginfo_t info{};
  const bool is_any = process == any_child;
  // The fourth argument is a number here.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const auto* const options = reinterpret_cast<const void*>(std::uintptr_t(wanted | WNOHANG | WNOWAIT));
  const int error = ipc::host_call(SYS_waitid, is_any ? P_ALL : P_PID, is_any ? 0 : process,
                                   reinterpret_cast<std::uint64_t>(&info), options);
  return error == 0 ? info.si_pid : 0;
}

// The wait of a process whose children act in order: the child, 0 or -1 as the host would answer.
// nullopt: what comes is the host's matter. real(process, flags): the host's wait.
template <typename Real>
std::optional<pid_t> wait_in_order(pid_t process, int flags, Real real) {
  ipc::Client* const client = clock_client();
  OrderedThread* const own = client == nullptr ? nullptr : ordered_thread();
  if (own == nullptr || !thread_order().is_shared()) return {};
  if (process != any_child && process <= 0) return {};
  ThreadOrder& order = thread_order();
  const auto awaited = process == any_child ? 0 : static_cast<std::uint32_t>(process);
  bool is_over = false;  // by the handler of a signal, unless there is what the wait is for
  for (;;) {
    order.enter(*own);
    order.check_killed();
    const bool has_come_back = std::exchange(own->has_come_back, false);
    const bool checks =
        (has_come_back || ((flags & WNOHANG) != 0 && may_have_been_told())) && order.is_ending(awaited);
    if (OrderedThread* const ended = order.find_ended(awaited)) {
      const auto child = static_cast<pid_t>(ended->process);
      const pid_t result = real(child, flags & ~WNOHANG);
      if ((flags & WNOWAIT) == 0 || result < 0) order.forget_process(*ended);
      order.leave(*own, true);
      return result;
    }
    if (const pid_t child = stopped_or_continued(process, flags); child != 0) {
      const pid_t result = real(child, flags | WNOHANG);
      order.leave(*own, true);
      return result;
    }
    if (!order.has_child(awaited)) {
      order.leave(*own, true);
      return {};
    }
    if (is_over) {
      order.leave(*own, true);
      errno = EINTR;
      return -1;
    }
    if ((flags & WNOHANG) != 0 && !checks) {
      const pid_t outside = ended_outside(process);
      const pid_t result = outside == 0 ? 0 : real(outside, flags);
      OrderedThread* const entry = order.find_process(static_cast<std::uint32_t>(outside));
      if (result > 0 && entry != nullptr) order.forget_process(*entry);
      const bool waits_for_host = result == 0 && order.has_child_outside(awaited);
      order.leave(*own, true);
      if (waits_for_host) note_check(ipc::OutsideCause::child, 1);
      if (result == 0 && !waits_for_host) charge_empty_check();
      return result;
    }
    VirtualTimers& timers = VirtualTimers::of_process();
    const std::int64_t due_ps = timers.first_ps();
    const bool has_timer = due_ps != VirtualTimer::never_ps;
    const std::int64_t until_ps = has_timer ? order_deadline_ps(due_ps) : OrderedThread::no_deadline_ps;
    own->hears_of_stops = (flags & (WUNTRACED | WCONTINUED)) != 0;
    const ipc::Woken woken = order.await_end(*own, awaited, until_ps);
    own->hears_of_stops = false;
    if (woken == ipc::Woken::timed_out) client->pass_until_ps(own->key.clock_ps);
    order.leave(*own, true);
    if (woken == ipc::Woken::no) return {};
    const bool has_handled = client->has_due_timer() && timers.fire(*client, true);
    const bool is_interrupted = woken == ipc::Woken::interrupted && !order.is_ending(awaited);
    const int signal = has_handled ? timers.last_signal() : own->ended_by;
    is_over = (has_handled || is_interrupted) &&
              (signal != 0 ? has_interrupting_handler(signal) : has_interrupting_handler());
  }
}

// The host has told of the end of a child that had an entry.
void forget_reaped(pid_t child, int flags) {
  if (child <= 0 || (flags & WNOWAIT) != 0 || !thread_order().is_shared()) return;
  if (OrderedThread* const entry = thread_order().find_process(static_cast<std::uint32_t>(child)))
    thread_order().forget_process(*entry);
}

// A rank of one thread needs no order when its last child has ended.
void end_order() {
  ipc::Client* const client = clock_client();
  OrderedThread* const own = client == nullptr ? nullptr : ordered_thread();
  if (own == nullptr || client->is_own_block() || !ipc::is_single_threaded()) return;
  if (thread_order().has_processes()) return;
  client->lock();  // its clock comes to that of the thread
  client->unlock();
  thread_order().retire(*own);
}

// Calls real(process, status, flags), as wait4().
template <typename Real>
pid_t wait_for_child(pid_t process, int* status, int flags, Real real) {
  int own_status = 0;
  const auto wait = [&](pid_t child, int how) { return real(child, &own_status, how); };
  const auto failure = [&] { return WIFEXITED(own_status) ? WEXITSTATUS(own_status) : 0; };
  ChildWait wait_of_loop(clock_client());
  pid_t child = 0;
  const bool is_refused = (flags & ~flags_of_all) != 0;
  if (const auto ordered = is_refused ? std::nullopt : wait_in_order(process, flags, wait)) {
    child = *ordered;
    if (child > 0) forget_check();
    if (child > 0 && !WIFEXITED(own_status) && !WIFSIGNALED(own_status))
      return reported(child, status, own_status);
    if (child > 0)
      note_reaped(child, flags, WIFEXITED(own_status) && WEXITSTATUS(own_status) != loader_failed);
    if (child > 0) end_order();
    if (child > 0) wait_of_loop.end(failure());
    return child > 0 ? reported(child, status, own_status) : child;
  }
  {
    const HostPace pace((flags & WNOHANG) != 0 ? nullptr : pacing_client());
    child = wait(process, flags);
  }
  const bool has_ended = WIFEXITED(own_status) || WIFSIGNALED(own_status);
  if (has_ended) forget_reaped(child, flags);
  if (has_ended) end_order();
  if (child > 0 && has_ended) wait_of_loop.end(failure());
  note_waited(child, own_status, flags);
  return child > 0 ? reported(child, status, own_status) : child;
}

}  // namespace

APENET_EXPORT pid_t wait4(pid_t process, int* status, int flags, rusage* use) noexcept {
  static const auto real = next<pid_t (*)(pid_t, int*, int, rusage*)>("wait4");
  return wait_for_child(process, status, flags,
                        [&](pid_t child, int* own, int how) { return real(child, own, how, use); });
}

APENET_EXPORT pid_t wait3(int* status, int flags, rusage* use) noexcept {
  return wait4(-1, status, flags, use);
}

APENET_EXPORT pid_t waitpid(pid_t process, int* status, int flags) {
  static const auto real = next<pid_t (*)(pid_t, int*, int)>("waitpid");
  return wait_for_child(process, status, flags,
                        [&](pid_t child, int* own, int how) { return real(child, own, how); });
}

APENET_EXPORT pid_t wait(int* status) {
  return waitpid(-1, status, 0);
}

APENET_EXPORT int waitid(idtype_t type, id_t process, siginfo_t* info, int flags) {
  static const auto real = next<int (*)(idtype_t, id_t, siginfo_t*, int)>("waitid");
  const bool is_one = type == P_PID || type == P_ALL;
  if (is_one && (flags & WEXITED) != 0 && (flags & ~flags_of_waitid) == 0) {
    siginfo_t own{};
    const auto wait = [&](pid_t child, int how) {
      own.si_pid = 0;
      const int error = real(P_PID, static_cast<id_t>(child), &own, how);
      return error != 0 ? error : own.si_pid;
    };
    const pid_t awaited = type == P_ALL ? -1 : static_cast<pid_t>(process);
    ChildWait wait_of_loop(clock_client());
    if (const std::optional<pid_t> child = wait_in_order(awaited, flags, wait)) {
      if (*child > 0) forget_check();
      if (*child > 0 && (own.si_code == CLD_STOPPED || own.si_code == CLD_CONTINUED))
        return reported(0, info, own);
      const bool has_exited = own.si_code == CLD_EXITED;
      if (*child > 0 && (flags & WNOWAIT) == 0)
        note_reaped(*child, flags, has_exited && own.si_status != loader_failed);
      if (*child > 0) end_order();
      if (*child > 0) wait_of_loop.end(has_exited ? own.si_status : 0);
      return *child < 0 ? -1 : reported(0, info, *child > 0 ? own : siginfo_t{});
    }
  }
  const HostPace pace((flags & WNOHANG) != 0 ? nullptr : pacing_client());
  siginfo_t own{};
  const int result = real(type, process, &own, flags);
  if (result != 0) return result;
  if (own.si_pid == 0 && (flags & WNOHANG) != 0) note_check(OutsideCause::child, 1);
  if (own.si_pid > 0) note_end_of_child(flags);
  const bool has_exited = own.si_code == CLD_EXITED;
  const bool has_ended = has_exited || own.si_code == CLD_KILLED || own.si_code == CLD_DUMPED;
  if (own.si_pid > 0 && has_ended && (flags & WNOWAIT) == 0) {
    forget_reaped(own.si_pid, flags);
    end_order();
    note_reaped(own.si_pid, flags, has_exited && own.si_status != loader_failed);
  }
  return reported(0, info, own);
}

}  // namespace apenet::shim
