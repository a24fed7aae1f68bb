#include "runtime/shim/child_processes.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/single_threaded.hpp"
#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/cycle_counter.hpp"
#include "runtime/shim/direct_calls.hpp"
#include "runtime/shim/family.hpp"
#include "runtime/shim/ordered_files.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/own_files.hpp"
#include "runtime/shim/process_files.hpp"
#include "runtime/shim/process_images.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {
namespace {

using ipc::host_call;
using ipc::OrderedThread;

// The start by vfork() that this thread is in. Its child uses the same memory.
struct VforkStart {
  alignas(NewProcess) std::array<std::byte, sizeof(NewProcess)> storage{};
  NewProcess* start = nullptr;
};

constinit thread_local VforkStart vfork_start __attribute__((tls_model("initial-exec")));

// What the host does when a process gets a signal for which it has no handler.
enum class SignalEffect : std::uint8_t { none, ends, stops, continues };

SignalEffect effect_of(int signal) {
  switch (signal) {
    case SIGCHLD:
    case SIGURG:
    case SIGWINCH:
      return SignalEffect::none;
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
      return SignalEffect::stops;
    case SIGCONT:
      return SignalEffect::continues;
    default:
      return SignalEffect::ends;
  }
}

// A set of signals in /proc/PID/status, as "SigCgt:\t0000000000000002".
bool has_signal(std::string_view status, std::string_view set, int signal) {
  const std::size_t at = status.find(set);
  if (at == std::string_view::npos) return false;
  const std::string_view digits = status.substr(std::min(at + set.size(), status.size()));
  std::uint64_t signals = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), signals, 16);
  return (signals >> static_cast<unsigned>(signal - 1) & 1U) != 0;
}

// Whether the process handles, ignores or blocks the signal, or is in a group that it cannot stop. None of
// this is so of two signals.
bool deals_with(pid_t process, int signal) {
  if (signal == SIGKILL || signal == SIGSTOP) return false;
  ProcessPath path;
  std::snprintf(path.data(), path.size(), "/proc/%d/status", process);
  std::array<char, 4096> text{};
  const int file = host_call(SYS_openat, AT_FDCWD, path.data(), O_RDONLY | O_CLOEXEC);
  const int bytes = file < 0 ? 0 : host_call(SYS_read, file, text.data(), text.size());
  if (file >= 0) host_call(SYS_close, file, 0);
  const std::string_view status(text.data(), static_cast<std::size_t>(std::max(bytes, 0)));
  return has_signal(status, "SigBlk:\t", signal) || has_signal(status, "SigIgn:\t", signal) ||
         has_signal(status, "SigCgt:\t", signal) ||
         (effect_of(signal) == SignalEffect::stops && is_group_orphaned(process));
}

// Whether kill(to) sends to the process.
bool is_sent_to(pid_t to, pid_t process) {
  if (to > 0) return to == process;
  return to == -1 || getpgid(process) == (to == 0 ? getpgid(0) : -to);
}

bool stops_itself(pid_t to, int signal) {
  const pid_t own = getpid();
  return effect_of(signal) == SignalEffect::stops && is_sent_to(to, own) && !deals_with(own, signal);
}

bool is_stopped(pid_t process) {
  ProcessText buffer;
  return stat_field(read_of(process, process, "stat", buffer), 3).starts_with('T');
}

// Waits in the host for what comes at once.
constexpr int most_pauses = 10'000;
template <typename HasCome>
void await_soon(HasCome has_come, int most = most_pauses) {
  constexpr timespec pause{.tv_sec = 0, .tv_nsec = 200'000};
  timespec* const left = nullptr;
  for (int i = 0; i < most && !has_come(); ++i) host_call(SYS_nanosleep, &pause, left);
}

// The host's mask of the thread, which is not the program's business.
void change_host_mask(int how, const sigset_t* set, sigset_t* before) {
  constexpr std::size_t bytes_of_set = 8;
  host_call(SYS_rt_sigprocmask, how, set, reinterpret_cast<std::uint64_t>(before),
            reinterpret_cast<const void*>(bytes_of_set));  // NOLINT(performance-no-int-to-ptr)
}

bool has_child_signal() {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, SIGCHLD) == 1;
}

void note_signal_to(pid_t process, int signal, const OrderedThread& from) {
  const auto number = static_cast<std::uint32_t>(process);
  const bool is_dealt_with = deals_with(process, signal);
  const SignalEffect effect = effect_of(signal);
  if (is_dealt_with) {
    thread_order().ask_process(number, signal, from);
  } else if (effect == SignalEffect::ends) {
    await_soon([&] { return ipc::has_process_ended(number); });
    if (ipc::has_process_ended(number)) thread_order().note_killed(number, from);
  } else if (effect == SignalEffect::stops) {
    await_soon([&] { return is_stopped(process); });
    if (is_stopped(process)) thread_order().note_stopped(number);
  }
}

// Unless it has been stopped already: nobody hears of that then.
void announce_stop(pid_t process, const OrderedThread& from) {
  const auto number = static_cast<std::uint32_t>(process);
  if (!thread_order().has_stopped(number)) thread_order().announce_stop(number, from);
}

// Calls use(process) for each other process of the order to which kill(to) sends.
template <typename Use>
void for_each_sent_to(pid_t to, Use use) {
  ipc::ThreadOrder::Processes processes{};
  const std::size_t count = thread_order().list_processes(processes);
  for (std::size_t i = 0; i < count; ++i) {
    const auto one = static_cast<pid_t>(processes[i]);
    if (one > 0 && is_sent_to(to, one)) use(one);
  }
}

}  // namespace

void note_mask_change(int how, const sigset_t& set) {
  if (how == SIG_BLOCK || !thread_order().has_processes()) return;
  OrderedThread* const own = ordered_thread();
  sigset_t pending;
  if (own == nullptr || sigpending(&pending) != 0) return;
  for (const int signal : {SIGTSTP, SIGTTIN, SIGTTOU}) {
    struct sigaction handling {};
    const bool is_let_in = (sigismember(&set, signal) == 1) == (how == SIG_UNBLOCK);
    if (!is_let_in || sigismember(&pending, signal) != 1) continue;
    if (sigaction(signal, nullptr, &handling) != 0 || handling.sa_handler != SIG_DFL) continue;
    const int error = errno;
    thread_order().enter(*own);
    announce_stop(getpid(), *own);
    thread_order().note_stopped(own->process);
    thread_order().leave(*own, !is_in_call());
    errno = error;
    return;
  }
}

void await_stops() {
  for_each_sent_to(-1, [](pid_t one) {
    if (thread_order().has_stopped(static_cast<std::uint32_t>(one)))
      await_soon([&] { return is_stopped(one); });
  });
}

NewProcess::NewProcess(bool is_followed) {
  if (apenet_socket_process_begins != nullptr) apenet_socket_process_begins();
  ipc::Client* const client = is_followed ? clock_client() : nullptr;
  if (client == nullptr || is_in_call() || is_leaving) return;
  own_ = enter_order();
  table_ = thread_order().is_shared() ? ipc::Client::order_table() : nullptr;
  if (own_ == nullptr || table_ == nullptr || !thread_order().has_started()) {
    own_ = nullptr;
    return;
  }
  prepare_order();
  publish_own_files();
  thread_order().enter(*own_);
  entry_ = thread_order().create_process(*own_);
  if (entry_ != nullptr) tell_sockets(ipc::SocketBoard::Process::not_started);
}

// The libraries that answer for simulated sockets share them with the process, or take them back.
void NewProcess::tell_sockets(std::uint32_t process) const {
  if (apenet_socket_process_started == nullptr) return;
  apenet_socket_process_started(thread_order().place_of_process(*entry_), process);
}

NewProcess::~NewProcess() {
  if (own_ == nullptr) return;
  const int error = errno;
  leave_to_host();
  thread_order().leave(*own_, true);
  errno = error;
}

void NewProcess::note(pid_t child) {
  if (entry_ == nullptr || child <= 0) return;
  const int error = errno;
  tell_sockets(static_cast<std::uint32_t>(child));
  thread_order().note_process(*entry_, static_cast<std::uint32_t>(child));
  entry_ = nullptr;
  errno = error;
}

void NewProcess::become() {
  own_ = nullptr;
  if (entry_ == nullptr) return;
  own_note = nullptr;                               // in the memory of the rank
  std::construct_at(&VirtualTimers::of_process());  // it inherits none
  ipc::Client::become_member(*table_, *entry_);
  keep_cycle_counter();
}

void NewProcess::leave_to_host() {
  if (entry_ == nullptr) return;
  tell_sockets(0);
  thread_order().note_process(*std::exchange(entry_, nullptr), 0);
}

void leave_order_for_program() {
  if (NewProcess* const start = vfork_start.start; start != nullptr) return start->leave_to_host();
  if (!ipc::Client::is_member()) return;
  const auto own = static_cast<std::uint32_t>(host_call(SYS_getpid, 0, 0));
  if (OrderedThread* const entry = thread_order().find_process(own)) thread_order().forget_process(*entry);
}

SignalAction::SignalAction(pid_t process, int signal) : own_(ordered_thread()), process_(process) {
  if (own_ != nullptr && !thread_order().has_processes() && !is_for_first_thread()) own_ = nullptr;
  if (own_ == nullptr) return;
  const int error = errno;
  thread_order().enter(*own_);
  if (signal != 0) {
    for_each_sent_to(process, [&](pid_t one) {
      thread_order().announce_signal(static_cast<std::uint32_t>(one), signal, *own_);
    });
    if (is_for_first_thread()) thread_order().announce_signal(own_->process, signal, *own_);
  }
  const SignalEffect effect = effect_of(signal);
  if (tells_own_process(signal)) {
    sigset_t child_signal;
    sigemptyset(&child_signal);
    sigaddset(&child_signal, SIGCHLD);
    holds_child_signal_ = true;
    change_host_mask(SIG_BLOCK, &child_signal, &blocked_before_);
  }
  if (stops_itself(process, signal)) {
    // The host would stop the others of its group with it, without a word to the order.
    for_each_sent_to(process, [&](pid_t one) {
      if (deals_with(one, signal)) return;
      announce_stop(one, *own_);
      if (host_call(SYS_kill, one, signal) != 0) return;
      await_soon([&] { return is_stopped(one); });
      if (is_stopped(one)) thread_order().note_stopped(static_cast<std::uint32_t>(one));
    });
    announce_stop(getpid(), *own_);
    thread_order().note_stopped(own_->process);
    thread_order().leave(*std::exchange(own_, nullptr), !is_in_call());
  } else if (effect == SignalEffect::stops) {
    for_each_sent_to(process, [&](pid_t one) {
      if (!deals_with(one, signal)) announce_stop(one, *own_);
    });
  } else if (effect == SignalEffect::continues) {
    for_each_sent_to(process, [this](pid_t one) {
      const auto number = static_cast<std::uint32_t>(one);
      if (!thread_order().has_stopped(number)) return;
      await_soon([&] { return is_stopped(one); });
      thread_order().announce_stop(number, *own_);
      thread_order().note_continued(number, *own_);
    });
  }
  errno = error;
}

SignalAction::~SignalAction() {
  if (own_ == nullptr) return;
  const int error = errno;
  for_each_sent_to(process_, [this](pid_t one) {
    thread_order().announce_signal(static_cast<std::uint32_t>(one), 0, *own_);
  });
  if (is_for_first_thread()) thread_order().announce_signal(own_->process, 0, *own_);
  thread_order().leave(*own_, !is_in_call());
  if (holds_child_signal_) change_host_mask(SIG_SETMASK, &blocked_before_, nullptr);
  errno = error;
}

bool SignalAction::tells_own_process(int signal) const {
  const SignalEffect effect = effect_of(signal);
  if (effect != SignalEffect::stops && effect != SignalEffect::continues) return false;
  struct sigaction handling {};
  sigset_t blocked{};
  sigaction(SIGCHLD, nullptr, &handling);
  change_host_mask(SIG_BLOCK, nullptr, &blocked);
  const bool waits = handling.sa_handler == SIG_DFL && sigismember(&blocked, SIGCHLD) == 1;
  const bool is_handled = handling.sa_handler != SIG_DFL && handling.sa_handler != SIG_IGN;
  if ((handling.sa_flags & SA_NOCLDSTOP) != 0 || (!waits && !is_handled)) return false;
  bool tells = false;
  for_each_sent_to(process_, [&](pid_t one) {
    const auto number = static_cast<std::uint32_t>(one);
    const OrderedThread* const entry = thread_order().find_process(number);
    if (entry == nullptr || entry->parent != own_->process) return;
    const bool is_stopped_now = thread_order().has_stopped(number);
    tells = tells || (effect == SignalEffect::continues ? is_stopped_now
                                                        : !is_stopped_now && !deals_with(one, signal));
  });
  return tells;
}

bool SignalAction::is_of_order(pid_t process) const {
  return own_ != nullptr && process > 0 && thread_order().acts_in_order(static_cast<std::uint32_t>(process));
}

void SignalAction::note_sent(pid_t process, int signal) const {
  if (own_ == nullptr || signal == 0) return;
  const int error = errno;
  for_each_sent_to(process, [&](pid_t one) { note_signal_to(one, signal, *own_); });
  // Another thread may take it.
  if (holds_child_signal_)
    await_soon(has_child_signal, ipc::is_single_threaded() ? most_pauses : most_pauses / 100);
  if (is_for_first_thread()) thread_order().ask_process(own_->process, signal, *own_);
  errno = error;
}

// Another thread of the process sends it, which the first one mostly takes.
bool SignalAction::is_for_first_thread() const {
  return ipc::own_thread_id() != getpid() && is_sent_to(process_, getpid());
}

APENET_EXPORT ipc::Block* apenet_member_block() {
  ipc::Client* const client = ipc::Client::attached();
  return client == nullptr || !client->is_own_block() ? nullptr : &client->block();
}

APENET_EXPORT pid_t fork() noexcept {
  static const auto real = next<pid_t (*)()>("fork");
  NewProcess fresh;
  const pid_t child = real();
  if (child == 0) {
    fresh.become();
  } else {
    fresh.note(child);
  }
  return child;
}

#define APENET_HIDDEN extern "C" __attribute__((visibility("hidden"), used))

APENET_HIDDEN void apenet_vfork_begins() {
  const int error = errno;
  VforkStart& own = vfork_start;
  note_process_start();
  note_library_start();
  let_direct_calls_pass();
  own.start = new (own.storage.data()) NewProcess;
  errno = error;
}

// In the parent. result: the host's.
APENET_HIDDEN pid_t apenet_vfork_ends(long result) {
  catch_direct_calls();
  VforkStart& own = vfork_start;
  if (NewProcess* const start = std::exchange(own.start, nullptr)) {
    start->note(static_cast<pid_t>(result));
    std::destroy_at(start);
  }
  if (result >= 0) return static_cast<pid_t>(result);
  errno = static_cast<int>(-result);
  return -1;
}

// The child returns first, and overwrites the stack below the caller's frame: the address to which both
// return waits in a register meanwhile, as in the C library.
#if defined(__x86_64__)

static_assert(SYS_vfork == 58);
__asm__(R"(
    .text
    .globl  vfork
    .type   vfork, @function
vfork:
    .cfi_startproc
    endbr64
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    call    apenet_vfork_begins
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    .cfi_register %rip, %rdi
    movl    $58, %eax
    nopl    0x6170656e(%rax)
    syscall
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rip, -8
    testq   %rax, %rax
    je      1f
    movq    %rax, %rdi
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    call    apenet_vfork_ends
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
1:  ret
    .cfi_endproc
    .size   vfork, .-vfork
)");

#elif defined(__aarch64__)

static_assert(SYS_clone == 220 && (CLONE_VM | CLONE_VFORK | SIGCHLD) == 0x4111);
__asm__(R"(
    .text
    .globl  vfork
    .type   vfork, %function
vfork:
    .cfi_startproc
    hint    #34
    stp     x29, x30, [sp, #-16]!
    .cfi_adjust_cfa_offset 16
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    bl      apenet_vfork_begins
    ldp     x29, x30, [sp], #16
    .cfi_adjust_cfa_offset -16
    .cfi_restore x29
    .cfi_restore x30
    mov     x0, #0x4111
    mov     x1, #0
    mov     x2, #0
    mov     x3, #0
    mov     x4, #0
    mov     x8, #220
    mov     x8, x8
    svc     #0
    cbz     x0, 1f
    b       apenet_vfork_ends
1:  ret
    .cfi_endproc
    .size   vfork, .-vfork
)");

#endif

}  // namespace apenet::shim
