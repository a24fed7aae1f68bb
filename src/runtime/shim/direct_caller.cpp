#if defined(__x86_64__)

#include "runtime/shim/direct_caller.hpp"

#include <linux/sched.h>
#include <sys/syscall.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstring>

#include "runtime/shim/answer_stack.hpp"
#include "runtime/shim/direct_calls.hpp"

namespace apenet::shim {
namespace {

// What the program's thread needs to go on after a call that passes: it makes the call in the C library, with
// this on its stack below what it may use without telling (the red zone), and comes back by the assembler
// below.
struct PassedCall {
  std::uint64_t back;   // apenet_passed_call
  std::uint64_t place;  // where the program goes on
  std::uint64_t first;  // the registers of the first two arguments
  std::uint64_t second;
};
constexpr std::uint64_t red_zone = 128;
static_assert(sizeof(PassedCall) == 32);

}  // namespace
}  // namespace apenet::shim

// The C library's instruction returns there, to the first if the thread is watched; in a child with a stack
// of its own: to the last. The kernel has changed %rcx. Cancellation unwinds the stack through them, so each
// needs an instruction before it.
__asm__(R"(
    .text
    .type   apenet_watched_call, @function
    .cfi_startproc
    .cfi_def_cfa %rsp, 152
    .cfi_offset %rip, -152
    nop
apenet_watched_call:
    movq    apenet_catches_calls@gottpoff(%rip), %rcx
    movb    $1, %fs:(%rcx)
    .size   apenet_watched_call, .-apenet_watched_call
    .type   apenet_passed_call, @function
apenet_passed_call:
    popq    %rcx
    .cfi_def_cfa_offset 144
    .cfi_register %rip, %rcx
    popq    %rdi
    .cfi_def_cfa_offset 136
    popq    %rsi
    .cfi_def_cfa_offset 128
    leaq    128(%rsp), %rsp
    .cfi_def_cfa_offset 0
    jmp     *%rcx
    .cfi_endproc
    .size   apenet_passed_call, .-apenet_passed_call
    .type   apenet_passed_child, @function
apenet_passed_child:
    popq    %rcx
    popq    %rdi
    popq    %rsi
    jmp     *%rcx
    .size   apenet_passed_child, .-apenet_passed_child
)");

extern "C" {
__attribute__((visibility("hidden"))) void apenet_watched_call();
__attribute__((visibility("hidden"))) void apenet_passed_call();
__attribute__((visibility("hidden"))) void apenet_passed_child();
}

namespace apenet::shim {
namespace {

// A child that uses its parent's stack must not use its memory: it would overwrite what the parent needs.
// CLONE_NEWPID as in syscall().
std::uint64_t started_flags(std::uint64_t flags, bool has_stack) {
  note_uncaught((flags & CLONE_THREAD) != 0 ? ipc::UncaughtCall::threads : ipc::UncaughtCall::processes);
  flags &= ~static_cast<std::uint64_t>(CLONE_NEWPID);
  return has_stack ? flags : flags & ~static_cast<std::uint64_t>(CLONE_VM);
}

}  // namespace

void DirectCaller::answer(long result) {
  registers_[REG_RAX] = result;
  apenet_catches_on = is_watched_;
}

void DirectCaller::repeat() {
  constexpr greg_t instruction_bytes = 2;
  registers_[REG_RIP] -= instruction_bytes;
}

void DirectCaller::pass() {
  const auto back = reinterpret_cast<std::uint64_t>(is_watched_ ? &apenet_watched_call : &apenet_passed_call);
  if (number() != SYS_rt_sigreturn) push(back, word(REG_RDI));
  registers_[REG_RIP] = static_cast<greg_t>(library_call_);
}

void DirectCaller::pass_start() {
  switch (number()) {
    case SYS_fork:
      note_uncaught(ipc::UncaughtCall::processes);
      break;
    case SYS_vfork:
      note_uncaught(ipc::UncaughtCall::processes);
      registers_[REG_RAX] = SYS_clone;
      registers_[REG_RDI] = CLONE_VFORK | SIGCHLD;
      registers_[REG_RSI] = 0;
      break;
    case SYS_clone:
      return pass_clone();
    case SYS_clone3:
      return pass_clone3();
    default:
      break;
  }
  pass();
}

void DirectCaller::push(std::uint64_t back, std::uint64_t first) {
  const std::uint64_t stack = word(REG_RSP) - red_zone - sizeof(PassedCall);
  *at<PassedCall>(stack) = {.back = back, .place = place(), .first = first, .second = word(REG_RSI)};
  registers_[REG_RSP] = static_cast<greg_t>(stack);
}

std::uint64_t DirectCaller::push_child(std::uint64_t end) const {
  end -= sizeof(PassedCall);
  *at<PassedCall>(end) = {.back = reinterpret_cast<std::uint64_t>(&apenet_passed_child),
                          .place = place(),
                          .first = word(REG_RDI),
                          .second = word(REG_RSI)};
  return end;
}

void DirectCaller::pass_clone() {
  const std::uint64_t stack = word(REG_RSI);
  const std::uint64_t child = stack == 0 ? 0 : push_child(stack);
  const std::uint64_t flags = started_flags(word(REG_RDI), stack != 0);
  pass();
  registers_[REG_RDI] = static_cast<greg_t>(flags);
  registers_[REG_RSI] = static_cast<greg_t>(child);
}

void DirectCaller::pass_clone3() {
  const std::uint64_t given = word(REG_RDI);
  const std::size_t bytes = std::min<std::size_t>(word(REG_RSI), sizeof(clone_args));
  if (bytes < CLONE_ARGS_SIZE_VER0 || word(REG_RSI) > sizeof(clone_args)) return pass();
  clone_args arguments{};
  std::memcpy(&arguments, at<void>(given), bytes);
  const bool has_stack = arguments.stack != 0;
  if (has_stack) arguments.stack_size = push_child(arguments.stack + arguments.stack_size) - arguments.stack;
  arguments.flags = started_flags(arguments.flags, has_stack);
  pass();
  // In the red zone of the stack that it has now.
  static_assert(sizeof arguments <= red_zone);
  const std::uint64_t copy = word(REG_RSP) - sizeof arguments;
  std::memcpy(at<void>(copy), &arguments, sizeof arguments);
  registers_[REG_RDI] = static_cast<greg_t>(copy);
}

}  // namespace apenet::shim

#endif
