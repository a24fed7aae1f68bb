// Calls by syscall() that the shim answers when they are made by name: each is passed to the function of that
// name, with the arguments as the kernel has them. Its sets of signals are shorter than the C library's, its
// timers are numbers, and it writes what is left of a time limit over the limit.
#include "runtime/shim/named_calls.hpp"

#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/program_memory.hpp"
#include "runtime/shim/deadlines.hpp"
#include "runtime/shim/direct_calls.hpp"
#include "runtime/shim/held_signals.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/sent_signals.hpp"

// The shim's function of this name, and not that of a library before it, which may be the caller: a library
// that counts sleeps makes each of them by syscall().
#define OWN(name)                                                                                      \
  ([] {                                                                                                \
    static const auto found = reinterpret_cast<decltype(&::name)>(apenet::shim::called_symbol(#name)); \
    return found;                                                                                      \
  }())

namespace apenet::shim {
namespace {

constexpr long kernel_set_bytes = 8;

// The arguments of one call.
class CallWords {
 public:
  explicit CallWords(const CallArguments& words) : words_(words) {}
  template <typename Type = void>
  [[nodiscard]] Type* pointer(std::size_t at) const {
    return reinterpret_cast<Type*>(words_[at]);  // NOLINT(performance-no-int-to-ptr)
  }
  [[nodiscard]] int number(std::size_t at) const { return static_cast<int>(words_[at]); }
  [[nodiscard]] std::size_t size(std::size_t at) const { return static_cast<std::size_t>(words_[at]); }
  // A timer of the kernel's, as the C library names it.
  [[nodiscard]] timer_t timer(std::size_t at) const {
    return reinterpret_cast<timer_t>(std::intptr_t{number(at)});  // NOLINT(performance-no-int-to-ptr)
  }
  [[nodiscard]] long word(std::size_t at) const { return words_[at]; }

 private:
  const CallArguments& words_;
};

// A set of the kernel's; nullptr if there is none.
class WideSet {
 public:
  explicit WideSet(const void* set) : is_given_(set != nullptr) {
    sigemptyset(&wide_);
    if (is_given_) is_readable_ = ipc::copy_in(&wide_, set, kernel_set_bytes);
  }
  [[nodiscard]] const sigset_t* get() const { return is_given_ ? &wide_ : nullptr; }
  // Also if there is none.
  [[nodiscard]] bool is_readable() const { return is_readable_; }

 private:
  bool is_given_;
  bool is_readable_ = true;
  sigset_t wide_{};
};

long failed(int error) {
  errno = error;
  return -1;
}

// The program's memory may be read-only, which the kernel ignores here.
void write_over(timespec* limit, timespec left) {
  const int error = errno;
  iovec from{.iov_base = &left, .iov_len = sizeof left};
  iovec to{.iov_base = limit, .iov_len = sizeof left};
  ipc::host_call(SYS_process_vm_writev, getpid(), &from, 1, &to, 1);
  errno = error;
}

// Calls wait(). What is left of its limit stands there afterwards.
template <typename Wait>
long wait_and_write(timespec* limit, Wait wait) {
  ipc::Client* const client = limit == nullptr ? nullptr : clock_client();
  if (client == nullptr || !is_valid(limit)) return wait();
  const std::int64_t until_ps =
      now_ps(*client) + std::min(to_ps(*limit), ipc::end_of_time_ps - now_ps(*client));
  const long result = wait();
  write_over(limit, to_timespec(std::max<std::int64_t>(until_ps - now_ps(*client), 0)));
  return result;
}

long select_by_kernel(const CallWords& given) {
  struct MaskArgument {
    const void* set;
    std::size_t bytes;
  };
  MaskArgument mask{.set = nullptr, .bytes = kernel_set_bytes};
  const void* const argument = given.pointer(5);
  if (argument != nullptr && !ipc::copy_in(&mask, argument, sizeof mask)) return failed(EFAULT);
  if (mask.set != nullptr && mask.bytes != kernel_set_bytes) return failed(EINVAL);
  const WideSet blocked(mask.set);
  if (!blocked.is_readable() || !ipc::is_readable_or_none(given.pointer<timespec>(4))) return failed(EFAULT);
  auto* const limit = given.pointer<timespec>(4);
  return wait_and_write(limit, [&] {
    return OWN(pselect)(given.number(0), given.pointer<fd_set>(1), given.pointer<fd_set>(2),
                        given.pointer<fd_set>(3), limit, blocked.get());
  });
}

long poll_by_kernel(const CallWords& given) {
  const WideSet blocked(given.pointer(3));
  if (blocked.get() != nullptr && given.word(4) != kernel_set_bytes) return failed(EINVAL);
  if (!blocked.is_readable() || !ipc::is_readable_or_none(given.pointer<timespec>(2))) return failed(EFAULT);
  auto* const limit = given.pointer<timespec>(2);
  return wait_and_write(
      limit, [&] { return OWN(ppoll)(given.pointer<pollfd>(0), given.size(1), limit, blocked.get()); });
}

// Either of the two: with a limit in milliseconds, or a time.
long epoll_by_kernel(const CallWords& given, bool has_time) {
  const WideSet blocked(given.pointer(4));
  if (blocked.get() != nullptr && given.word(5) != kernel_set_bytes) return failed(EINVAL);
  if (!blocked.is_readable()) return failed(EFAULT);
  auto* const events = given.pointer<epoll_event>(1);
  return has_time ? epoll_pwait2(given.number(0), events, given.number(2), given.pointer<const timespec>(3),
                                 blocked.get())
                  : epoll_pwait(given.number(0), events, given.number(2), given.number(3), blocked.get());
}

// The kernel takes SIGEV_THREAD for SIGEV_SIGNAL.
long create_timer(const CallWords& given) {
  sigevent own{};
  const auto* const event = given.pointer<const sigevent>(1);
  if (event != nullptr && !ipc::copy_in(&own, event, sizeof own)) return failed(EFAULT);
  if (own.sigev_notify == SIGEV_THREAD) own.sigev_notify = SIGEV_SIGNAL;
  timer_t timer{};
  const int result =
      OWN(timer_create)(static_cast<clockid_t>(given.word(0)), event == nullptr ? nullptr : &own, &timer);
  const int number = static_cast<int>(reinterpret_cast<std::intptr_t>(timer));
  if (result != 0 || ipc::copy_out(given.pointer(2), &number, sizeof number)) return result;
  OWN(timer_delete)(timer);
  return failed(EFAULT);
}

long wait_for_process(const CallWords& given) {
  auto* const use = given.pointer<rusage>(4);
  if (use != nullptr)
    return ipc::host_call(SYS_waitid, given.number(0), given.number(1),
                          static_cast<std::uint64_t>(given.word(2)), given.pointer(3),
                          static_cast<std::uint64_t>(given.word(4)));
  return OWN(waitid)(static_cast<idtype_t>(given.number(0)), static_cast<id_t>(given.number(1)),
                     given.pointer<siginfo_t>(2), given.number(3));
}

long write_times(const CallWords& given) {
  tms used{};
  const clock_t now = OWN(times)(&used);
  return ipc::copy_out_if_wanted(given.pointer<tms>(0), used) ? now : failed(EFAULT);
}

long time_by_kernel(const CallWords& given) {
  const time_t now = OWN(time)(nullptr);
  return ipc::copy_out_if_wanted(given.pointer<time_t>(0), now) ? now : failed(EFAULT);
}

long time_call(long number, const CallWords& given) {
  const auto clock = static_cast<clockid_t>(given.word(0));
  switch (number) {
    case SYS_clock_gettime: {
      timespec now{};
      const int result = OWN(clock_gettime)(clock, &now);
      return result != 0 || ipc::copy_out(given.pointer(1), &now, sizeof now) ? result : failed(EFAULT);
    }
    case SYS_clock_getres: {
      timespec resolution{};
      const int result = OWN(clock_getres)(clock, &resolution);
      const bool is_written = ipc::copy_out_if_wanted(given.pointer<timespec>(1), resolution);
      return result != 0 || is_written ? result : failed(EFAULT);
    }
    case SYS_clock_settime:
      return OWN(clock_settime)(clock, given.pointer<const timespec>(1));
    case SYS_gettimeofday: {
      timeval now{};
      struct timezone zone {};
      OWN(gettimeofday)(&now, &zone);
      const bool is_written = ipc::copy_out_if_wanted(given.pointer<timeval>(0), now) &&
                              ipc::copy_out_if_wanted(given.pointer<struct timezone>(1), zone);
      return is_written ? 0 : failed(EFAULT);
    }
    case SYS_settimeofday:
      return OWN(settimeofday)(given.pointer<const timeval>(0), given.pointer<const struct timezone>(1));
    case ipc::old_call::time:
      return time_by_kernel(given);
    case SYS_times:
      return write_times(given);
    case SYS_getrusage:
      return OWN(getrusage)(static_cast<__rusage_who_t>(given.number(0)), given.pointer<rusage>(1));
    case SYS_nanosleep:
      return OWN(nanosleep)(given.pointer<const timespec>(0), given.pointer<timespec>(1));
    default: {  // clock_nanosleep
      const int error = OWN(clock_nanosleep)(clock, given.number(1), given.pointer<const timespec>(2),
                                             given.pointer<timespec>(3));
      return error == 0 ? 0 : failed(error);
    }
  }
}

// Anything else of the list is a call of time_call().
long timer_call(long number, const CallWords& given) {
  switch (number) {
    case ipc::old_call::alarm:
      return OWN(alarm)(static_cast<unsigned>(given.number(0)));
    case SYS_getitimer:
      return OWN(getitimer)(static_cast<__itimer_which_t>(given.number(0)), given.pointer<itimerval>(1));
    case SYS_setitimer:
      return OWN(setitimer)(static_cast<__itimer_which_t>(given.number(0)), given.pointer<const itimerval>(1),
                            given.pointer<itimerval>(2));
    case SYS_timer_create:
      return create_timer(given);
    case SYS_timer_settime:
      return OWN(timer_settime)(given.timer(0), given.number(1), given.pointer<const itimerspec>(2),
                                given.pointer<itimerspec>(3));
    case SYS_timer_gettime:
      return OWN(timer_gettime)(given.timer(0), given.pointer<itimerspec>(1));
    case SYS_timer_getoverrun:
      return OWN(timer_getoverrun)(given.timer(0));
    case SYS_timer_delete:
      return OWN(timer_delete)(given.timer(0));
    case SYS_timerfd_create:
      return OWN(timerfd_create)(given.number(0), given.number(1));
    case SYS_timerfd_settime:
      return OWN(timerfd_settime)(given.number(0), given.number(1), given.pointer<const itimerspec>(2),
                                  given.pointer<itimerspec>(3));
    case SYS_timerfd_gettime:
      return OWN(timerfd_gettime)(given.number(0), given.pointer<itimerspec>(1));
    default:
      return time_call(number, given);
  }
}

long queue(long number, const CallWords& given) {
  const bool is_to_thread = number == SYS_rt_tgsigqueueinfo;
  siginfo_t own{};
  if (!ipc::copy_in(&own, given.pointer(is_to_thread ? 3 : 2), sizeof own)) return failed(EFAULT);
  own.si_signo = given.number(is_to_thread ? 2 : 1);
  return is_to_thread ? queue_signal_to_thread(given.number(0), given.number(1), own)
                      : queue_signal(given.number(0), own);
}

// A call whose first argument is a set.
template <typename Call>
long with_set(const CallWords& given, Call call) {
  const WideSet set(given.pointer(0));
  return set.is_readable() ? call(set.get()) : failed(EFAULT);
}

// Waits for signals and processes, and what is sent to them.
long process_call(long number, const CallWords& given) {
  switch (number) {
    case ipc::old_call::pause:
      return OWN(pause)();
    case SYS_kill:
      return OWN(kill)(given.number(0), given.number(1));
    case SYS_tgkill:
      return OWN(tgkill)(given.number(0), given.number(1), given.number(2));
    case SYS_tkill:
      return signal_thread(given.number(0), given.number(1));
    case SYS_pidfd_send_signal:
      return signal_descriptor(given.number(0), given.number(1), given.pointer<siginfo_t>(2),
                               static_cast<unsigned>(given.number(3)));
    case SYS_rt_sigaction: {
      if (given.word(3) != kernel_set_bytes) return failed(EINVAL);
      const long result = change_action(given.number(0), given.pointer(1), given.pointer(2));
      return result < 0 ? failed(static_cast<int>(-result)) : result;
    }
    case SYS_rt_sigqueueinfo:
    case SYS_rt_tgsigqueueinfo:
      return queue(number, given);
    case SYS_rt_sigsuspend:
      if (given.word(1) != kernel_set_bytes) return failed(EINVAL);
      return with_set(given, [](const sigset_t* set) { return OWN(sigsuspend)(set); });
    case SYS_rt_sigtimedwait:
      if (given.word(3) != kernel_set_bytes) return failed(EINVAL);
      return with_set(given, [&](const sigset_t* set) {
        return OWN(sigtimedwait)(set, given.pointer<siginfo_t>(1), given.pointer<const timespec>(2));
      });
    case SYS_wait4:
      return OWN(wait4)(given.number(0), given.pointer<int>(1), given.number(2), given.pointer<rusage>(3));
    case SYS_waitid:
      return wait_for_process(given);
    case SYS_sched_yield:
      return OWN(sched_yield)();
    case SYS_uname:
      return OWN(uname)(given.pointer<utsname>(0));
    case SYS_semtimedop:
      return OWN(semtimedop)(given.number(0), given.pointer<sembuf>(1), given.size(2),
                             given.pointer<const timespec>(3));
    case SYS_mq_timedsend:
      return OWN(mq_timedsend)(given.number(0), given.pointer<const char>(1), given.size(2),
                               static_cast<unsigned>(given.number(3)), given.pointer<const timespec>(4));
    case SYS_mq_timedreceive:
      return OWN(mq_timedreceive)(given.number(0), given.pointer<char>(1), given.size(2),
                                  given.pointer<unsigned>(3), given.pointer<const timespec>(4));
    default:
      return timer_call(number, given);
  }
}

}  // namespace

long named_call(long number, const CallArguments& arguments) {
  const CallWords given(arguments);
  switch (number) {
    case SYS_read:
      return OWN(read)(given.number(0), given.pointer(1), given.size(2));
    case SYS_write:
      return OWN(write)(given.number(0), given.pointer<const void>(1), given.size(2));
    case ipc::old_call::poll:
      return OWN(poll)(given.pointer<pollfd>(0), given.size(1), given.number(2));
    case SYS_ppoll:
      return poll_by_kernel(given);
    case ipc::old_call::select:
      if (!ipc::is_readable_or_none(given.pointer<timeval>(4))) return failed(EFAULT);
      return OWN(select)(given.number(0), given.pointer<fd_set>(1), given.pointer<fd_set>(2),
                         given.pointer<fd_set>(3), given.pointer<timeval>(4));
    case SYS_pselect6:
      return select_by_kernel(given);
    case ipc::old_call::epoll_create:
      return OWN(epoll_create)(given.number(0));
    case SYS_epoll_create1:
      return OWN(epoll_create1)(given.number(0));
    case SYS_epoll_ctl:
      return OWN(epoll_ctl)(given.number(0), given.number(1), given.number(2), given.pointer<epoll_event>(3));
    case ipc::old_call::epoll_wait:
      return OWN(epoll_wait)(given.number(0), given.pointer<epoll_event>(1), given.number(2),
                             given.number(3));
    case SYS_epoll_pwait:
      return epoll_by_kernel(given, false);
    case SYS_epoll_pwait2:
      return epoll_by_kernel(given, true);
    case ipc::old_call::access:
      return OWN(access)(given.pointer<const char>(0), given.number(1));
    case SYS_faccessat:
      return OWN(faccessat)(given.number(0), given.pointer<const char>(1), given.number(2), 0);
    case ipc::old_call::pipe:
      return OWN(pipe)(given.pointer<int>(0));
    case SYS_pipe2:
      return OWN(pipe2)(given.pointer<int>(0), given.number(1));
    case ipc::old_call::eventfd:
      return OWN(eventfd)(static_cast<unsigned>(given.number(0)), 0);
    case SYS_eventfd2:
      return OWN(eventfd)(static_cast<unsigned>(given.number(0)), given.number(1));
    case SYS_socketpair:
      return OWN(socketpair)(given.number(0), given.number(1), given.number(2), given.pointer<int>(3));
    case SYS_io_uring_setup:
      // Requests in a ring would pass by the shim. A host may lack rings, so libraries do without.
      note_uncaught(ipc::UncaughtCall::rings);
      return failed(ENOSYS);
    case SYS_connect:
      return OWN(connect)(given.number(0), given.pointer<const sockaddr>(1),
                          static_cast<socklen_t>(given.size(2)));
    default:
      return process_call(number, given);
  }
}

}  // namespace apenet::shim
