// Signals that the program sends. Those to another rank reach it in virtual time (ipc/sent_signals.hpp),
// those to other processes of the host at once.
#include "runtime/shim/sent_signals.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/single_threaded.hpp"
#include "runtime/shim/child_processes.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/process_files.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

using ipc::host_call;

// They stop and continue a process, or end it without its help: the host's matter.
bool is_of_host(int signal) {
  switch (signal) {
    case SIGKILL:
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
    case SIGCONT:
      return true;
    default:
      return signal < 1 || signal > ipc::most_signal;
  }
}

bool is_stop(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

// A handler of a signal may have interrupted a call of a library, which has the rank's rings.
bool is_in_library(ipc::Client& client) {
  const ipc::OrderedThread* const own = ordered_thread();
  if (own != nullptr) return own->acts == ipc::ThreadActs::acting;
  return !ipc::is_single_threaded() || !client.block().lock.is_free();
}

// The signal goes to a process that is another rank. Returns false if it is the host's matter.
bool send_to_rank(pid_t process, const siginfo_t& info) {
  if (process <= 0 || is_of_host(info.si_signo)) return false;
  ipc::Client* const client = virtual_client();
  if (client == nullptr || is_leaving) return false;
  const std::optional<std::uint32_t> rank = client->rank_of_process(static_cast<std::uint32_t>(process));
  if (!rank || *rank == client->rank() || is_in_library(*client)) return false;
  client->send_signal(*rank, {.number = info.si_signo,
                              .code = info.si_code,
                              .process = info.si_pid,
                              .user = info.si_uid,
                              .value = reinterpret_cast<std::uintptr_t>(info.si_value.sival_ptr)});
  return true;
}

siginfo_t described(int signal, int code, sigval value = {}) {
  siginfo_t info{};
  info.si_signo = signal;
  info.si_code = code;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value = value;
  return info;
}

// The process for which a descriptor of pidfd_open() stands; 0 or less: it is none, or the process has ended.
pid_t process_of_descriptor(int file) {
  const int error = errno;
  ProcessPath path;
  ProcessText buffer;
  std::snprintf(path.data(), path.size(), "/proc/self/fdinfo/%d", file);
  const std::string_view text = bytes_of(path, buffer);
  errno = error;
  constexpr std::string_view name = "\nPid:\t";
  const std::size_t at = text.find(name);
  if (at == std::string_view::npos) return 0;
  return number_at<pid_t>(text.data() + at + name.size(), text.data() + text.size());
}

}  // namespace

bool stops_own_process(int signal) {
  if (signal == SIGSTOP) return true;
  struct sigaction now {};
  sigset_t blocked;
  return is_stop(signal) && sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL &&
         pthread_sigmask(SIG_BLOCK, nullptr, &blocked) == 0 && sigismember(&blocked, signal) == 0;
}

int queue_signal(pid_t process, siginfo_t& info) {
  if (send_to_rank(process, info)) return 0;
  return host_call(SYS_rt_sigqueueinfo, process, info.si_signo, reinterpret_cast<std::uint64_t>(&info));
}

// The threads of another process are not known.
int queue_signal_to_thread(pid_t process, pid_t thread, siginfo_t& info) {
  if (process == thread && send_to_rank(process, info)) return 0;
  return host_call(SYS_rt_tgsigqueueinfo, process, thread, static_cast<std::uint64_t>(info.si_signo), &info);
}

APENET_EXPORT int kill(pid_t process, int signal) noexcept {
  static const auto real = next<int (*)(pid_t, int)>("kill");
  if (send_to_rank(process, described(signal, SI_USER))) return 0;
  const SignalAction action(process, signal);
  const int result = real(process, signal);
  if (result == 0) action.note_sent(process, signal);
  if (action.is_of_order(process)) {
    if (signal == 0 && result == 0) charge_empty_check();
    return result;
  }
  if (signal == 0 && process > 1 && (result == 0 || errno == EPERM))
    note_check(ipc::OutsideCause::process, static_cast<std::uint64_t>(process));
  return result;
}

// Calls that fail once another process has ended.
void note_process_check(pid_t process, bool is_there) {
  const bool is_other = process > 1 && process != getpid() && is_there;
  if (is_other && !thread_order().knows_process(static_cast<std::uint32_t>(process)))
    note_check(ipc::OutsideCause::process, static_cast<std::uint64_t>(process));
}
#define APENET_PROCESS_CHECK(result, name, parameters, arguments)                \
  APENET_EXPORT result name parameters noexcept {                                \
    static const auto real = next<std::add_pointer_t<result parameters>>(#name); \
    const result done = real arguments;                                          \
    note_process_check(process, done >= 0);                                      \
    return done;                                                                 \
  }
APENET_PROCESS_CHECK(pid_t, getpgid, (pid_t process), (process))
APENET_PROCESS_CHECK(pid_t, getsid, (pid_t process), (process))
APENET_PROCESS_CHECK(int, sched_getscheduler, (pid_t process), (process))
APENET_PROCESS_CHECK(int, sched_getparam, (pid_t process, sched_param* own), (process, own))
// A priority may be negative, so errno tells of a failure.
APENET_EXPORT int getpriority(__priority_which_t which, id_t process) noexcept {
  static const auto real = next<int (*)(__priority_which_t, id_t)>("getpriority");
  const int error = std::exchange(errno, 0);
  const int priority = real(which, process);
  const bool is_there = errno == 0;
  if (which == PRIO_PROCESS) note_process_check(static_cast<pid_t>(process), is_there);
  if (is_there) errno = error;
  return priority;
}

APENET_EXPORT int killpg(pid_t group, int signal) noexcept {
  if (group >= 0) return kill(group == 0 ? 0 : -group, signal);
  errno = EINVAL;
  return -1;
}

// A stop is of the whole process, which the order hears of from kill().
APENET_EXPORT int raise(int signal) noexcept {
  static const auto real = next<int (*)(int)>("raise");
  return stops_own_process(signal) ? kill(getpid(), signal) : real(signal);
}

APENET_EXPORT int tgkill(pid_t process, pid_t thread, int signal) {
  static const auto real = next<int (*)(pid_t, pid_t, int)>("tgkill");
  if (process == thread && send_to_rank(process, described(signal, SI_TKILL))) return 0;
  const bool stops = process == getpid() ? stops_own_process(signal) : is_stop(signal);
  return stops ? kill(process, signal) : real(process, thread, signal);
}

int signal_thread(pid_t thread, int signal) {
  const int error = errno;
  if (host_call(SYS_tgkill, getpid(), thread, 0) == 0) return tgkill(getpid(), thread, signal);
  errno = error;
  return is_stop(signal) ? kill(thread, signal) : host_call(SYS_tkill, thread, signal);
}

// With an explicit siginfo it is the host's matter.
int signal_descriptor(int file, int signal, siginfo_t* info, unsigned flags) {
  const pid_t process = info == nullptr && flags == 0 ? process_of_descriptor(file) : 0;
  if (process > 0) return kill(process, signal);
  // The fourth argument is a number here.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const auto* const last = reinterpret_cast<const void*>(std::uintptr_t{flags});
  return host_call(SYS_pidfd_send_signal, file, signal, reinterpret_cast<std::uint64_t>(info), last);
}

APENET_EXPORT int pidfd_send_signal(int file, int signal, siginfo_t* info, unsigned flags) noexcept {
  return signal_descriptor(file, signal, info, flags);
}

APENET_EXPORT int sigqueue(pid_t process, int signal, const sigval value) noexcept {
  static const auto real = next<int (*)(pid_t, int, sigval)>("sigqueue");
  if (send_to_rank(process, described(signal, SI_QUEUE, value))) return 0;
  const SignalAction action(process, signal);
  const int result = real(process, signal, value);
  if (result == 0) action.note_sent(process, signal);
  return result;
}

}  // namespace apenet::shim
