// The processor's cycle counter (rdtsc, rdtscp), for programs that read it directly: `apenet run --trap-tsc`.
//
// The kernel turns each read into a SIGSEGV, and the handler here returns one tick per nanosecond of virtual
// time. A read costs some microseconds of wall time. Other faults go to the program's own handler
// (held_signals.hpp).
//
// Threads created before virtual time begins keep the host's counter.
#include "runtime/shim/cycle_counter.hpp"

#if !defined(__x86_64__)

// The option is rejected before anything starts: most kernels cannot trap reads of aarch64's counter
// (CNTVCT_EL0).
void apenet::shim::begin_cycle_counter() {}
void apenet::shim::keep_cycle_counter() {}
apenet::shim::Untrapped::Untrapped() {}
apenet::shim::Untrapped::~Untrapped() {}

#else

#include <dlfcn.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/computation.hpp"
#include "runtime/shim/held_signals.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

// system_code: where the kernel's own reads are.
struct Trap {
  std::atomic<bool> is_set{false};
  std::uint64_t system_code = 0;
};

constinit Trap trap;

bool is_trapping() {
  return trap.is_set.load(std::memory_order_relaxed);
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
  const std::uint64_t begin = trap.system_code;
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
bool answer_read(siginfo_t& /*info*/, ucontext_t& context) {
  mcontext_t& machine = context.uc_mcontext;
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

}  // namespace

Untrapped::Untrapped() {
  if (is_trapping()) set_trap(PR_TSC_ENABLE);
}

Untrapped::~Untrapped() {
  if (is_trapping()) set_trap(PR_TSC_SIGSEGV);
}

void keep_cycle_counter() {
  if (is_trapping()) set_trap(PR_TSC_SIGSEGV);
}

void begin_cycle_counter() {
  if (is_trapping() || std::getenv("APENET_TRAP_TSC") == nullptr) return;
  trap.system_code = getauxval(AT_SYSINFO_EHDR);
  hold_signal(SIGSEGV, answer_read);
  trap.is_set = true;
  pthread_atfork(nullptr, nullptr, [] { set_trap(PR_TSC_ENABLE); });
  if (set_trap(PR_TSC_SIGSEGV) == 0) return;
  std::fputs("apenet: --trap-tsc: expected a host that allows prctl(PR_SET_TSC)\n", stderr);
  std::_Exit(2);
}

namespace {

// The function in the library whose code calls: a library that was opened by dlopen() is in no search order.
void* symbol_of_caller(const void* caller, const char* name) {
  Dl_info place{};
  if (dladdr(caller, &place) == 0) return nullptr;
  void* const library = dlopen(place.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* const found = host_symbol(library, name);
  dlclose(library);
  return found;
}

}  // namespace

// UCX compares the counter with the clock until two rates agree, when it is loaded: also into a program that
// a rank starts, where the clock would be virtual and the counter the host's.
APENET_EXPORT void ucs_x86_init_tsc_freq() {
  static const auto real =
      reinterpret_cast<void (*)()>(symbol_of_caller(__builtin_return_address(0), "ucs_x86_init_tsc_freq"));
  if (real == nullptr) return;
  ++host_calls;
  real();
  --host_calls;
}

}  // namespace apenet::shim

#endif
