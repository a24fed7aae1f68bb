// Held signals: those by which the kernel passes an instruction of the program to the shim, SIGSEGV a read of
// the cycle counter and SIGSYS a system call. The program sets its own handlers and masks as before, and its
// handler gets what has another cause. But the host must not block a held signal, or the next such
// instruction ends the process.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstdint>

namespace apenet::shim {

// Deals with the instruction that has raised the signal. Returns false if the signal has another cause.
using SignalAnswer = bool (*)(siginfo_t& info, ucontext_t& context);

// A handler that the kernel calls, and no sanitizer, which would call it later. The kernel calls it with all
// signals blocked but the held ones.
struct DirectHandler {
  void (*entry)(int, siginfo_t*, void*) = nullptr;  // calls answer_held_signal()
  std::uint64_t restorer = 0;                       // the C library's code that returns from handlers
};

// What is done at a signal, as the kernel has it.
struct KernelAction {
  std::uintptr_t handler;
  std::uint64_t flags;
  std::uintptr_t restorer;
  std::uint64_t mask;
};
inline constexpr std::uint64_t has_restorer = 0x04000000;  // SA_RESTORER of the kernel
// Past the C library, which keeps some signals to itself.
[[nodiscard]] KernelAction kernel_action(int number);
bool set_kernel_action(int number, const KernelAction& action);

// handler: without a restorer, the C library's function sets the usual one.
void hold_signal(int number, SignalAnswer answer, const DirectHandler& handler = {});
void answer_held_signal(int number, siginfo_t* info, void* context);
[[nodiscard]] bool is_held(int number);
// Lets the held signals through to the calling thread.
void let_held_signals_in();
// From `let_only_held_signals_in` on, as when a DirectHandler begins, the thread gets no other signal, until
// `let_signals_in` sets the mask that it had before. Both leave errno as it is.
void let_only_held_signals_in();
void let_signals_in(const sigset_t& mask);

// As the system calls rt_sigaction and rt_sigprocmask. Return the kernel's result.
long change_action(int number, const void* action, void* before);
// mask: the set that the kernel gives the thread when it returns from the handler.
long change_mask(int how, const void* set, void* before, sigset_t& mask);

}  // namespace apenet::shim
