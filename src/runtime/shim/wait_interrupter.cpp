#include "runtime/shim/wait_interrupter.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/old_calls.hpp"
#include "runtime/shim/held_signals.hpp"
#include "runtime/shim/outside_waits.hpp"

namespace apenet::shim {
namespace {

namespace old_call = ipc::old_call;
using ipc::host_call;

// By which the C library makes its threads change their user. A program cannot block or handle it.
constexpr int second_signal = 33;
constexpr std::uint64_t second_bit = std::uint64_t{1} << (second_signal - 1U);
// Time that the thread has to come to its call. Nothing but real time depends on it.
constexpr std::int64_t moment_ns = 2'000'000;
// How often it may have come to none: a handler that leaves the wait by a jump does not tell of its end.
constexpr int most_tries = 100;

// In the masks of the timers' handlers: a second signal finds it where one runs, also if that has SA_NODEFER.
constexpr int handler_mark = 64;
constexpr std::uint64_t mark_bit = std::uint64_t{1} << (handler_mark - 1U);

// The calls that wait, and that a signal ends.
constexpr std::array waiting_calls = {
    SYS_read,         SYS_readv,  SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg,   SYS_accept,
    SYS_accept4,      SYS_write,  SYS_writev,   SYS_sendto,  SYS_sendmsg,    SYS_sendmmsg,
    SYS_wait4,        SYS_waitid, SYS_semop,    SYS_msgrcv,  SYS_msgsnd,     SYS_flock,
    SYS_fcntl,        SYS_openat, SYS_connect,  SYS_splice,  SYS_semtimedop, SYS_mq_timedreceive,
    SYS_mq_timedsend, SYS_tee,    SYS_vmsplice, SYS_sendfile};

// Those that do not go on after a handler with SA_RESTART.
constexpr std::array<long, 11> final_calls = {
    old_call::poll,  old_call::select, old_call::epoll_wait, old_call::pause, SYS_ppoll,     SYS_pselect6,
    SYS_epoll_pwait, SYS_msgrcv,       SYS_msgsnd,           SYS_semop,       SYS_semtimedop};

// Where the thread was when the signal came.
class Interrupted {
 public:
#if defined(__x86_64__)
  explicit Interrupted(ucontext_t& context)
      : place_(context.uc_mcontext.gregs[REG_RIP]),
        word_(context.uc_mcontext.gregs[REG_RAX]),
        second_argument_(context.uc_mcontext.gregs[REG_RSI]),
        later_arguments_{context.uc_mcontext.gregs[REG_R10], context.uc_mcontext.gregs[REG_R8],
                         context.uc_mcontext.gregs[REG_R9]} {}
  [[nodiscard]] long number() const {
    return word_;
  }
  [[nodiscard]] long second_argument() const {
    return second_argument_;
  }

 private:
  static constexpr std::array<unsigned char, 2> call = {0x0f, 0x05};
  static constexpr std::array<unsigned char, 7> own_mark = {0x0f, 0x1f, 0x80, 0x6e, 0x65, 0x70, 0x61};
  greg_t& place_;
  greg_t& word_;
  greg_t second_argument_;
  std::array<greg_t, 3> later_arguments_;
#elif defined(__aarch64__)
  explicit Interrupted(ucontext_t& context)
      : place_(context.uc_mcontext.pc),
        word_(context.uc_mcontext.regs[0]),
        second_argument_(context.uc_mcontext.regs[1]),
        later_arguments_{context.uc_mcontext.regs[3], context.uc_mcontext.regs[4],
                         context.uc_mcontext.regs[5]},
        number_(context.uc_mcontext.regs[8]) {}
  [[nodiscard]] long number() const {
    return static_cast<long>(number_);
  }
  [[nodiscard]] long second_argument() const {
    return static_cast<long>(second_argument_);
  }

 private:
  static constexpr std::array<unsigned char, 4> call = {0x01, 0x00, 0x00, 0xd4};
  static constexpr std::array<unsigned char, 4> own_mark = {0xe8, 0x03, 0x08, 0xaa};
  decltype(mcontext_t::pc)& place_;
  decltype(mcontext_t::pc)& word_;
  decltype(mcontext_t::pc) second_argument_;
  std::array<decltype(mcontext_t::pc), 3> later_arguments_;
  decltype(mcontext_t::pc) number_;
#endif

 public:
  // The call has ended by a signal.
  [[nodiscard]] bool has_ended() const {
    return static_cast<long>(word_) == -EINTR && stands(call, -static_cast<long>(call.size()));
  }
  // It would begin, or begin again.
  [[nodiscard]] bool is_at_wait() const {
    if (!stands(call, 0)) return false;
    if (number() == SYS_futex) return is_futex_wait();
    const bool waits = is_one_of(waiting_calls) || (is_one_of(final_calls) && !has_mask());
    // The simulator's own calls go on.
    return waits && !stands(own_mark, -static_cast<long>(own_mark.size()));
  }
  // Whether a handler with SA_RESTART ends it, too.
  [[nodiscard]] bool is_final() const {
    return is_one_of(final_calls);
  }
  void end_call() {
    place_ += call.size();
    word_ = static_cast<std::remove_reference_t<decltype(word_)>>(-EINTR);
  }

 private:
  template <typename Calls>
  [[nodiscard]] bool is_one_of(const Calls& calls) const {
    return std::find(calls.begin(), calls.end(), number()) != calls.end();
  }
  // With one, the call may not let the timer's signal in.
  [[nodiscard]] bool has_mask() const {
    struct Mask {
      const void* set;
      std::size_t bytes;
    };
    if (number() == SYS_ppoll) return later_arguments_[0] != 0;
    if (number() == SYS_epoll_pwait) return later_arguments_[1] != 0;
    if (number() != SYS_pselect6 || later_arguments_[2] == 0) return false;
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<const Mask*>(later_arguments_[2])->set != nullptr;
  }
  // Also one of the simulator's own, by which it makes the program's waits.
  [[nodiscard]] bool is_futex_wait() const {
    constexpr std::array waits = {FUTEX_WAIT, FUTEX_WAIT_BITSET, FUTEX_LOCK_PI, FUTEX_WAIT_REQUEUE_PI};
    const long operation = second_argument() & FUTEX_CMD_MASK;
    return std::find(waits.begin(), waits.end(), operation) != waits.end();
  }
  template <std::size_t size>
  [[nodiscard]] bool stands(const std::array<unsigned char, size>& code, long from) const {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return std::memcmp(reinterpret_cast<const void*>(static_cast<long>(place_) + from), code.data(), size) ==
           0;
  }
};

// A signal of a timer that may come too early.
struct Expected {
  int signal = 0;           // 0: none
  std::int64_t at_ns = 0;   // when the second signal is to come, on the host's CLOCK_MONOTONIC
  bool ends_calls = false;  // its handler has no SA_RESTART
  bool has_mark = false;    // handler_mark tells whether its handler runs
  int tries = 0;            // second signals that have changed nothing
};

struct State {
  // More timers at a time may be missed.
  std::array<Expected, 16> expected{};
  int timer = -1;                     // number in the host; -1: none
  pid_t process = 0;                  // that has made it: not its forks
  KernelAction before{};              // how the second signal was handled
  std::atomic<bool> are_void{false};  // another thread has set timers: those that are expected may not come
};

State& state() {
  static constinit State value;
  return value;
}

void set_timer(std::int64_t at_ns) {
  const itimerspec at{.it_interval = {},
                      .it_value = {.tv_sec = at_ns / 1'000'000'000, .tv_nsec = at_ns % 1'000'000'000}};
  host_call(SYS_timer_settime, state().timer, TIMER_ABSTIME, reinterpret_cast<std::uint64_t>(&at));
}

void delete_timer() {
  if (state().timer >= 0 && state().process == getpid()) host_call(SYS_timer_delete, state().timer, 0);
  state().timer = -1;
}

// For the next of those that are expected.
void set_or_delete_timer() {
  std::int64_t first_ns = INT64_MAX;
  for (const Expected& one : state().expected) {
    if (one.signal != 0) first_ns = std::min(first_ns, one.at_ns);
  }
  first_ns == INT64_MAX ? delete_timer() : set_timer(first_ns);
}

void interrupt(ucontext_t& context) {
  if (state().are_void.exchange(false)) state().expected = {};
  const std::int64_t now_ns = host_now_ns();
  Interrupted thread(context);
  bool is_in_handler = false;
  bool ends_calls = false;
  for (const Expected& one : state().expected) {
    if (one.signal == 0 || one.at_ns > now_ns) continue;
    // The C library has no place for the second signal in the masks that it sets: also not in a handler.
    is_in_handler = is_in_handler || sigismember(&context.uc_sigmask, one.signal) == 1 ||
                    (one.has_mark && sigismember(&context.uc_sigmask, handler_mark) == 1);
    ends_calls = ends_calls || one.ends_calls || thread.is_final();
  }
  const bool is_at_wait = !is_in_handler && thread.is_at_wait();
  if (is_at_wait && ends_calls) thread.end_call();
  const bool is_over = is_at_wait || (!is_in_handler && thread.has_ended());
  for (Expected& one : state().expected) {
    if (one.signal == 0 || one.at_ns > now_ns) continue;
    one.at_ns = now_ns + moment_ns;
    if (is_over || ++one.tries == most_tries) one = {};
  }
  set_or_delete_timer();
}

void handle(int number, siginfo_t* info, void* context) {
  const int error = errno;
  if (info->si_code != SI_TIMER || info->si_value.sival_ptr != &state()) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    const auto theirs = reinterpret_cast<void (*)(int, siginfo_t*, void*)>(state().before.handler);
    if (state().before.handler > 1) theirs(number, info, context);
  } else if (state().timer >= 0) {
    interrupt(*static_cast<ucontext_t*>(context));
  }
  errno = error;
}

bool is_ours(const KernelAction& action) {
  return action.handler == reinterpret_cast<std::uintptr_t>(&handle);
}

// Returns false if it cannot.
bool install(const KernelAction& like) {
  const KernelAction now = kernel_action(second_signal);
  if (is_ours(now)) return true;
  state().before = now;
  return set_kernel_action(second_signal,
                           {.handler = reinterpret_cast<std::uintptr_t>(&handle),
                            .flags = (like.flags & has_restorer) | SA_SIGINFO | SA_RESTART | SA_ONSTACK,
                            .restorer = like.restorer,
                            .mask = 0});
}

}  // namespace

void WaitInterrupter::expect(int signal, std::int64_t after_ns, const sigset_t& blocked) {
  if (is_held(signal) || sigismember(&blocked, signal) == 1) return;
  KernelAction theirs = kernel_action(signal);
  if (theirs.handler <= 1) return;  // SIG_DFL, SIG_IGN
  auto& all = state().expected;
  auto* const free =
      std::find_if(all.begin(), all.end(), [](const Expected& one) { return one.signal == 0; });
  if (free == all.end() || !install(theirs)) return;
  constexpr std::uint64_t in_handlers = second_bit | mark_bit;
  if ((theirs.mask & in_handlers) != in_handlers) {
    theirs.mask |= in_handlers;
    if (!set_kernel_action(signal, theirs)) return;
  }
  if (state().timer < 0) {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = second_signal;
    event.sigev_value.sival_ptr = &state();
    event._sigev_un._tid = getpid();
    int timer = -1;
    if (host_call(SYS_timer_create, CLOCK_MONOTONIC, &event, reinterpret_cast<std::uint64_t>(&timer)) != 0)
      return;
    state().timer = timer;
    state().process = getpid();
  }
  *free = {.signal = signal,
           .at_ns = host_now_ns() + after_ns + moment_ns,
           .ends_calls = (theirs.flags & SA_RESTART) == 0,
           .has_mark = sigismember(&blocked, handler_mark) == 0};
  set_or_delete_timer();
}

void WaitInterrupter::forget_in_first_thread() {
  state().are_void = true;
}

void WaitInterrupter::forget_later() {
  const std::int64_t now_ns = host_now_ns();
  for (Expected& one : state().expected) {
    if (one.at_ns - moment_ns > now_ns) one = {};
  }
  set_or_delete_timer();
}

void WaitInterrupter::end() {
  state().expected = {};
  state().are_void = false;
  delete_timer();
  if (is_ours(kernel_action(second_signal))) set_kernel_action(second_signal, state().before);
}

}  // namespace apenet::shim
