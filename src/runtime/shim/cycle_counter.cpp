// The processor's cycle counter (rdtsc, rdtscp), for programs that read it directly: `apenet run --trap-tsc`.
//
// The kernel turns each read into a SIGSEGV, and the handler here returns one tick per nanosecond of virtual
// time. A read costs some microseconds of wall time. All other faults are passed to the program's own SIGSEGV
// handler, which may be set at any time.
//
// Threads created before the end of MPI_Init keep the host's counter.
#include "runtime/shim/cycle_counter.hpp"

#if !defined(__x86_64__)

// The option is rejected before anything starts.
void apenet::shim::begin_cycle_counter() {}
apenet::shim::Untrapped::Untrapped() {}
apenet::shim::Untrapped::~Untrapped() {}

#else

#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/computation.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

using Action = struct sigaction;
using SetAction = int (*)(int, const Action*, Action*);
using SetMask = int (*)(int, const sigset_t*, sigset_t*);

// The program's handler, called after ours. Only sigaction() writes it. A fault in one thread while another
// sets the handler is a race of the program, as it is without the shim.
struct Trap {
  std::atomic<bool> is_set{false};
  Action theirs{};
  // Resolved by begin_cycle_counter(), so that the fault handler does not have to.
  SetAction set_action = nullptr;
  SetMask set_mask = nullptr;
  std::uint64_t system_code = 0;
};

Trap& trap() {
  // Needs no guard: the thread sanitizer calls sigaction() before it can handle one.
  static constinit Trap value;
  return value;
}

bool is_trapping() {
  return trap().is_set.load(std::memory_order_relaxed);
}

int set_trap(int mode) {
  return ipc::host_call(SYS_prctl, PR_SET_TSC, mode);
}

std::uint64_t host_ticks() {
  set_trap(PR_TSC_ENABLE);
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  set_trap(PR_TSC_SIGSEGV);
  return std::uint64_t{high} << 32 | low;
}

// The kernel's clock functions in the vDSO also read the counter. They convert the value with constants that
// fit only the host's counter.
bool is_of_system(std::uint64_t instruction) {
  constexpr std::uint64_t most_bytes = 4 * 4096;
  const std::uint64_t begin = trap().system_code;
  return begin != 0 && instruction - begin < most_bytes;
}

std::uint64_t ticks(std::uint64_t instruction) {
  ipc::Client* client = is_of_system(instruction) ? nullptr : clock_client();
  if (client == nullptr) return host_ticks();
  const ProgramCall program_call(
      reinterpret_cast<const void*>(instruction),  // NOLINT(performance-no-int-to-ptr)
      "rdtsc", Callee::time);
  return static_cast<std::uint64_t>(monotonic_base_s * ns_per_s + read_clock_ps(*client) / ps_per_ns);
}

// Emulates the read and skips the instruction. Returns false if the fault has another cause.
bool answer(mcontext_t& machine) {
  constexpr greg_t general_protection = 13;
  if (machine.gregs[REG_TRAPNO] != general_protection) return false;
  const auto instruction = static_cast<std::uint64_t>(machine.gregs[REG_RIP]);
  const auto* code = reinterpret_cast<const std::uint8_t*>(instruction);  // NOLINT(performance-no-int-to-ptr)
  const bool is_rdtsc = code[0] == 0x0f && code[1] == 0x31;
  const bool is_rdtscp = code[0] == 0x0f && code[1] == 0x01 && code[2] == 0xf9;
  if (!is_rdtsc && !is_rdtscp) return false;
  const std::uint64_t value = ticks(instruction);
  machine.gregs[REG_RAX] = static_cast<greg_t>(value & 0xffffffff);
  machine.gregs[REG_RDX] = static_cast<greg_t>(value >> 32);
  if (is_rdtscp) machine.gregs[REG_RCX] = 0;  // report processor 0
  machine.gregs[REG_RIP] += is_rdtscp ? 3 : 2;
  return true;
}

// Does what the kernel would do with a SIGSEGV if the program's handler were installed.
void pass_on(int number, siginfo_t* info, void* context) {
  const Action theirs = trap().theirs;
  const bool was_sent = info->si_code <= 0;
  if (theirs.sa_handler == SIG_IGN && was_sent) return;
  if (theirs.sa_handler == SIG_DFL || theirs.sa_handler == SIG_IGN) {
    // The fault recurs and ends the process.
    const Action end{};
    // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): set with the trap
    trap().set_action(SIGSEGV, &end, nullptr);
    if (was_sent) raise(SIGSEGV);
    return;
  }
  if ((theirs.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) trap().theirs = Action{};
  sigset_t mask = theirs.sa_mask;
  // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): set with the trap
  trap().set_mask(SIG_BLOCK, &mask, nullptr);  // the kernel restores the mask when we return
  if ((theirs.sa_flags & SA_SIGINFO) != 0) {
    theirs.sa_sigaction(number, info, context);
  } else {
    theirs.sa_handler(number);
  }
}

void on_fault(int number, siginfo_t* info, void* context) {
  const int error = errno;
  if (!answer(static_cast<ucontext_t*>(context)->uc_mcontext)) pass_on(number, info, context);
  errno = error;
}

// Removes SIGSEGV from a set to block: if it were blocked, the next read would end the process.
sigset_t without_fault(sigset_t set) {
  sigdelset(&set, SIGSEGV);
  return set;
}

int change_mask(const char* function, int how, const sigset_t* set, sigset_t* before) {
  const auto real = next<SetMask>(function);
  if (!is_trapping() || set == nullptr || how == SIG_UNBLOCK) return real(how, set, before);
  const sigset_t allowed = without_fault(*set);
  return real(how, &allowed, before);
}

}  // namespace

Untrapped::Untrapped() {
  if (is_trapping()) set_trap(PR_TSC_ENABLE);
}

Untrapped::~Untrapped() {
  if (is_trapping()) set_trap(PR_TSC_SIGSEGV);
}

void begin_cycle_counter() {
  if (is_trapping() || std::getenv("APENET_TRAP_TSC") == nullptr) return;
  Action ours{};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&ours.sa_mask);
  trap().set_action = next<SetAction>("sigaction");
  trap().set_mask = next<SetMask>("pthread_sigmask");
  trap().system_code = getauxval(AT_SYSINFO_EHDR);
  trap().set_action(SIGSEGV, &ours, &trap().theirs);
  sigset_t faults;
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  trap().set_mask(SIG_UNBLOCK, &faults, nullptr);
  trap().is_set = true;
  pthread_atfork(nullptr, nullptr, [] { set_trap(PR_TSC_ENABLE); });
  if (set_trap(PR_TSC_SIGSEGV) == 0) return;
  std::fputs("apenet: --trap-tsc: expected a host that allows prctl(PR_SET_TSC)\n", stderr);
  std::_Exit(2);
}

APENET_EXPORT int sigaction(int number, const struct sigaction* action, struct sigaction* before) noexcept {
  const auto real = next<SetAction>("sigaction");
  if (!is_trapping() || number < 1 || number >= NSIG) return real(number, action, before);
  struct sigaction wanted {};
  if (action != nullptr) {
    wanted = *action;
    wanted.sa_mask = without_fault(wanted.sa_mask);
  }
  if (number != SIGSEGV) return real(number, action == nullptr ? nullptr : &wanted, before);
  if (before != nullptr) *before = trap().theirs;
  if (action != nullptr) trap().theirs = wanted;
  return 0;
}

APENET_EXPORT sighandler_t signal(int number, sighandler_t handler) noexcept {
  if (!is_trapping() || number != SIGSEGV)
    return next<sighandler_t (*)(int, sighandler_t)>("signal")(number, handler);
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGSEGV, &action, &before);
  return before.sa_handler;
}

APENET_EXPORT int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return change_mask("sigprocmask", how, set, before);
}

APENET_EXPORT int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return change_mask("pthread_sigmask", how, set, before);
}

#endif

}  // namespace apenet::shim
