// syscall(): passes the calls that the shim answers by name to those functions (named_calls.cpp), gives
// futexes time limits in virtual time, as timed_waits.cpp does for those of the C library, and the programs
// that are started the run's environment (program_starts.cpp). Notes starts and exits of processes
// (process_images.cpp).
//
// Those for sockets go to libapenet-sockets.so, if it is loaded. All other calls pass as in the C library's
// function, without a stack frame of ours, because the child of syscall(SYS_vfork) returns through it.
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>
#include <optional>
#include <utility>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/program_memory.hpp"
#include "runtime/shim/deadlines.hpp"
#include "runtime/shim/host_caller.hpp"
#include "runtime/shim/named_calls.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/shared_objects.hpp"
#include "runtime/shim/signal_waits.hpp"
#include "runtime/shim/system_calls.hpp"

#define APENET_HIDDEN extern "C" __attribute__((visibility("hidden"), used))

namespace apenet::shim {
namespace {

// The time limit of a futex operation is a duration in FUTEX_WAIT and a time of one of two clocks in others.
bool has_deadline(long command) {
  return command == FUTEX_WAIT_BITSET || command == FUTEX_WAIT_REQUEUE_PI || command == FUTEX_LOCK_PI ||
         command == FUTEX_LOCK_PI2;
}

clockid_t clock_of(long operation) {
  const bool is_realtime =
      (operation & FUTEX_CLOCK_REALTIME) != 0 || (operation & FUTEX_CMD_MASK) == FUTEX_LOCK_PI;
  return is_realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC;
}

// Whether another thread was the last to call with this word: by what they have read there, they decide
// whether to call. Within an action. Of words that share an entry, only the last one is known.
bool meets_another(const ipc::OrderedThread* own, long address) {
  struct Use {
    long address = 0;
    const ipc::OrderedThread* thread = nullptr;
  };
  static constinit std::array<Use, 256> uses{};
  Use& last = uses[static_cast<std::uint64_t>(address) / sizeof(std::uint32_t) % uses.size()];
  const Use before = std::exchange(last, Use{.address = address, .thread = own});
  return before.address == address && before.thread != own;
}

// Waits and wakes of an ordered thread, at words of its process. nullopt: the host's matter.
std::optional<long> order_futex(long address, long operation, long value, const timespec* time) {
  ipc::OrderedThread* const own = ordered_thread();
  if (own == nullptr) return {};
  auto* const word = reinterpret_cast<std::uint32_t*>(address);  // NOLINT(performance-no-int-to-ptr)
  const long command = operation & FUTEX_CMD_MASK;
  const bool wakes = command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET;
  const bool waits = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
  if (word == nullptr || (!wakes && !waits)) return {};
  if (waits && !ipc::is_readable(word, sizeof *word)) return {};
  ipc::Client* const client = clock_client();
  if (waits && time != nullptr && (client == nullptr || !is_valid(time))) return {};
  const ObjectUse use(own, word, (operation & FUTEX_PRIVATE_FLAG) == 0);
  if (!use.is_of_order()) return {};
  // Calls without the C library are those of Go, of whose threads one runs at a time.
  const bool counts = client != nullptr && thread_order().has_started() && !is_in_direct_call;
  if (counts && meets_another(own, address)) client->note_futex();
  if (wakes) {
    const auto most = static_cast<std::uint32_t>(std::clamp<long>(value, 0, INT_MAX));
    return thread_order().wake(use.name(), most, own);
  }
  std::int64_t until_ps = ipc::OrderedThread::no_deadline_ps;
  if (time != nullptr) {
    until_ps = order_deadline_ps(command == FUTEX_WAIT ? now_ps(*client) + to_ps(*time) : deadline_ps(*time));
  }
  OrderedWait limited(time != nullptr ? client : nullptr);
  begin_wait_beside(waits && time == nullptr ? own : nullptr);
  for (;;) {
    if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != static_cast<std::uint32_t>(value)) return -EAGAIN;
    switch (await_signal(*own, use.name(), until_ps, nullptr, time == nullptr)) {
      case SignalWait::timed_out:
        limited.expire();
        return -ETIMEDOUT;
      case SignalWait::interrupted:
        return -EINTR;
      case SignalWait::goes_on:
        continue;
      case SignalWait::woken:
        limited.end();
        end_wait_beside();
        return 0;
      case SignalWait::of_host:
        return 0;
    }
  }
}

// A wait with a limit that has begun before virtual time. It ends when virtual time begins, as a futex may at
// any time: the thread is in the order again before anyone goes on, looks, and waits in virtual time.
class EarlyFutexWait {
 public:
  EarlyFutexWait(const void* word, ipc::OrderedThread* own) : own_(own) {
    if (own_ == nullptr) return;
    for (std::atomic<const void*>& place : places) {
      const void* free = nullptr;
      if (!place.compare_exchange_strong(free, word)) continue;
      place_ = &place;
      break;
    }
    thread_order().go_outside(*own_);
  }
  ~EarlyFutexWait() {
    if (own_ == nullptr) return;
    const int error = errno;
    thread_order().return_inside(*own_);
    if (place_ != nullptr) *place_ = nullptr;
    thread_order().begin_alone(*own_);
    errno = error;
  }
  EarlyFutexWait(const EarlyFutexWait&) = delete;
  EarlyFutexWait& operator=(const EarlyFutexWait&) = delete;

  static void end_all() {
    for (std::atomic<const void*>& place : places) {
      // It may be about to wait.
      for (const void* word = place; word != nullptr; word = place) {
        ipc::host_call(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX);
        ipc::host_call(SYS_sched_yield, 0, 0);
      }
    }
  }

 private:
  static constexpr std::size_t room = 64;
  static constinit std::array<std::atomic<const void*>, room> places;
  ipc::OrderedThread* own_;
  std::atomic<const void*>* place_ = nullptr;
};

constinit std::array<std::atomic<const void*>, EarlyFutexWait::room> EarlyFutexWait::places{};

long futex(long address, long operation, long value, long limit, long second_address, long last) {
  const auto call = [&](const void* fourth) {
    return ipc::host_call(SYS_futex, address, operation, static_cast<std::uint64_t>(value), fourth,
                          static_cast<std::uint64_t>(second_address), static_cast<std::uint64_t>(last));
  };
  const auto* time = reinterpret_cast<const timespec*>(limit);  // NOLINT(performance-no-int-to-ptr)
  const long command = operation & FUTEX_CMD_MASK;
  if (const std::optional<long> ordered = order_futex(address, operation, value, time)) {
    // Threads without an order wait in the host.
    const bool wakes_more = (command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET) && *ordered < value;
    if (wakes_more) return *ordered + std::max(call(time), 0);
    if (*ordered >= 0) return *ordered;
    errno = static_cast<int>(-*ordered);
    return -1;
  }
  // In the other operations this argument is a number.
  const bool is_limited = time != nullptr && (command == FUTEX_WAIT || has_deadline(command));
  ipc::Client* client = is_limited ? clock_client() : nullptr;
  if (client == nullptr || !is_valid(time)) {
    if (command == FUTEX_WAKE)
      thread_order().wake(reinterpret_cast<const void*>(address), UINT32_MAX, nullptr);
    const bool is_private = (operation & FUTEX_PRIVATE_FLAG) != 0;
    ipc::OrderedThread* const own = is_limited && is_private ? ordered_thread() : nullptr;
    const EarlyFutexWait early(reinterpret_cast<const void*>(address), own);
    // Virtual time has just begun.
    if (is_limited && client == nullptr && clock_client() != nullptr) return 0;
    const bool waits = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
    const HostPace pace(waits ? pacing_client() : nullptr, HostPace::Ender::thread);
    return call(has_deadline(command) ? EarlyDeadline(time).get() : time);
  }
  const LimitedWait::Ender ender =
      (operation & FUTEX_PRIVATE_FLAG) != 0 ? LimitedWait::Ender::own_thread : LimitedWait::Ender::outside;
  if (has_deadline(command)) {
    const auto wait = [&](const timespec* until) { return call(until) < 0 ? -errno : 0; };
    const int result =
        wait_until(*client, *time, clock_of(operation), -ETIMEDOUT, wait, ender, std::optional(-EINTR));
    if (result == 0) return 0;
    errno = -result;
    return -1;
  }
  LimitedWait limited(*client, now_ps(*client) + to_ps(*time), ender);
  for (;;) {
    const timespec left = limited.left();
    const int result = call(&left);
    const int error = errno;
    const bool ends = limited.ends(result < 0 && error == ETIMEDOUT);
    errno = error;
    if (ends) return result;
    if (limited.is_left()) {
      errno = EINTR;
      return -1;
    }
  }
}

}  // namespace

void end_early_waits() {
  EarlyFutexWait::end_all();
}

}  // namespace apenet::shim

APENET_HIDDEN long apenet_named_call(long number, long first, long second, long third, long fourth,
                                     long fifth, long sixth) {
  APENET_TIME_CALL;
  if (number == SYS_futex) return apenet::shim::futex(first, second, third, fourth, fifth, sixth);
  return apenet::shim::named_call(number, {first, second, third, fourth, fifth, sixth});
}

APENET_HIDDEN long apenet_socket_way(long number, long first, long second, long third, long fourth,
                                     long fifth, long sixth) {
  long result = 0;
  if (apenet_socket_call(number, {first, second, third, fourth, fifth, sixth}, result)) return result;
  const auto word = [](long value) { return static_cast<std::uint64_t>(value); };
  return apenet::ipc::host_call(number, first, second, word(third),
                                reinterpret_cast<const void*>(fourth),  // NOLINT(performance-no-int-to-ptr)
                                word(fifth), word(sixth));
}

APENET_HIDDEN long apenet_call_failed(long negative_error) {
  errno = static_cast<int>(-negative_error);
  return -1;
}

namespace apenet::shim {
namespace {

constexpr std::size_t known_calls = 512;

constexpr std::array<std::uint8_t, known_calls> ways_of_calls() {
  std::array<std::uint8_t, known_calls> ways{};
  const auto set = [&ways](unsigned number, Way way) {
    if (number < ways.size()) ways[number] = way;  // others are old calls that this processor does not have
  };
  for (const unsigned number : named_calls) set(number, is_named);
  set(SYS_futex, is_named);
  for (const unsigned number : socket_calls) set(number, of_sockets);
  for (const unsigned number : {SYS_execve, SYS_execveat, SYS_exit, SYS_exit_group}) set(number, ends_image);
  for (const int number : {int{ipc::old_call::fork}, int{ipc::old_call::vfork}, SYS_clone3})
    set(static_cast<unsigned>(number), starts);
  set(SYS_clone, starts_flags);
  return ways;
}

}  // namespace
}  // namespace apenet::shim

extern "C" {
__attribute__((visibility("hidden"),
               used)) extern constexpr std::array<std::uint8_t, apenet::shim::known_calls>
    apenet_call_ways = apenet::shim::ways_of_calls();
}

apenet::shim::Way apenet::shim::way_of_call(long number) {
  const bool is_known = number >= 0 && static_cast<std::size_t>(number) < known_calls;
  return is_known ? Way{apenet_call_ways[static_cast<std::size_t>(number)]} : Way::passes;
}

static_assert(CLONE_NEWPID == 0x20000000 && apenet::shim::known_calls == 512);

#if defined(__x86_64__)
__asm__(R"(
    .text
    .globl  syscall
    .type   syscall, @function
syscall:
    .cfi_startproc
    endbr64
    cmpq    $511, %rdi
    ja      0f
    leaq    apenet_call_ways(%rip), %rax
    movzbl  (%rax,%rdi), %eax
    testl   %eax, %eax
    je      0f
    cmpl    $2, %eax
    jb      1f
    je      3f
    cmpl    $5, %eax
    je      5f
    cmpl    $4, %eax
    jne     4f
    andq    $~0x20000000, %rsi
4:  movb    $1, apenet_has_started(%rip)
0:  movq    %rdi, %rax
    movq    %rsi, %rdi
    movq    %rdx, %rsi
    movq    %rcx, %rdx
    movq    %r8, %r10
    movq    %r9, %r8
    movq    8(%rsp), %r9
    nopl    0x6170656e(%rax)
    syscall
    .globl  apenet_programs_call
    .hidden apenet_programs_call
apenet_programs_call:
    cmpq    $-4095, %rax
    jae     2f
    ret
1:  jmp     apenet_named_call
2:  movq    %rax, %rdi
    jmp     apenet_call_failed
3:  jmp     apenet_start_call
5:  movq    apenet_socket_call@GOTPCREL(%rip), %rax
    testq   %rax, %rax
    je      0b
    jmp     apenet_socket_way
    .cfi_endproc
    .size   syscall, .-syscall
)");
#elif defined(__aarch64__)
__asm__(R"(
    .text
    .globl  syscall
    .type   syscall, %function
syscall:
    .cfi_startproc
    hint    #34
    cmp     x0, #511
    b.hi    0f
    adrp    x16, apenet_call_ways
    add     x16, x16, #:lo12:apenet_call_ways
    ldrb    w16, [x16, x0]
    cbz     w16, 0f
    cmp     w16, #2
    b.lo    1f
    b.eq    3f
    cmp     w16, #5
    b.eq    5f
    cmp     w16, #4
    b.ne    4f
    and     x1, x1, #~0x20000000
4:  adrp    x16, apenet_has_started
    mov     w17, #1
    strb    w17, [x16, #:lo12:apenet_has_started]
0:  mov     x8, x0
    mov     x0, x1
    mov     x1, x2
    mov     x2, x3
    mov     x3, x4
    mov     x4, x5
    mov     x5, x6
    mov     x8, x8
    svc     #0
    cmn     x0, #4095
    b.hs    2f
    ret
1:  b       apenet_named_call
2:  b       apenet_call_failed
3:  b       apenet_start_call
5:  adrp    x16, :got:apenet_socket_call
    ldr     x16, [x16, #:got_lo12:apenet_socket_call]
    cbz     x16, 0b
    b       apenet_socket_way
    .cfi_endproc
    .size   syscall, .-syscall
)");
#endif
