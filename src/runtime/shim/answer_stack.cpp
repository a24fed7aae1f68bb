#include "runtime/shim/answer_stack.hpp"

#if !defined(__x86_64__)

void apenet::shim::make_answer_stack() {}

#else

#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cerrno>
#include <cstddef>

#include "runtime/shim/direct_calls.hpp"
#include "runtime/shim/held_signals.hpp"

__asm__(R"(
    .text
    .globl  apenet_enter_answer
    .hidden apenet_enter_answer
    .type   apenet_enter_answer, @function
apenet_enter_answer:
    .cfi_startproc
    pushq   %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rbp, -16
    movq    %rsp, %rbp
    .cfi_def_cfa_register %rbp
    movq    apenet_answer_stack@gottpoff(%rip), %rax
    movq    %fs:(%rax), %rcx
    movq    $0, %fs:(%rax)
    testq   %rcx, %rcx
    cmovneq %rcx, %rsp
    pushq   %rcx
    pushq   %rcx
    andq    $-16, %rsp
    movq    %rcx, (%rsp)
    call    apenet_answer_on_stack
    movq    (%rsp), %rcx
    movq    apenet_answer_stack@gottpoff(%rip), %rax
    movq    %rcx, %fs:(%rax)
    movq    %rbp, %rsp
    popq    %rbp
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size   apenet_enter_answer, .-apenet_enter_answer
)");

extern "C" {
// The end of the thread's stack for answers; nullptr: it has none, or is on it.
constinit thread_local char* apenet_answer_stack
    __attribute__((tls_model("initial-exec"), visibility("hidden"), used)) = nullptr;
constinit thread_local char apenet_catches_calls = 0;
constinit thread_local bool apenet_catches_on = false;
}

namespace apenet::shim {
namespace {

// Room for the waits of the shim, and for handlers of the program that run meanwhile.
constexpr std::size_t answer_bytes = std::size_t{128} << 10U;

void free_answer_stack(void* memory) {
  end_watch_of_calls();
  apenet_answer_stack = nullptr;
  munmap(memory, answer_bytes);
}

// PTHREAD_KEYS_MAX: the process has used all keys of threads' own data.
pthread_key_t answer_stack_key() {
  static const pthread_key_t value = [] {
    pthread_key_t key{};
    return pthread_key_create(&key, free_answer_stack) == 0 ? key : PTHREAD_KEYS_MAX;
  }();
  return value;
}

}  // namespace

void make_answer_stack() {
  if (pthread_getspecific(answer_stack_key()) != nullptr) return;
  void* const memory =
      mmap(nullptr, answer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  if (pthread_setspecific(answer_stack_key(), memory) != 0) {
    munmap(memory, answer_bytes);
    return;
  }
  apenet_answer_stack = static_cast<char*>(memory) + answer_bytes;
}

bool has_answer_stack() {
  return pthread_getspecific(answer_stack_key()) != nullptr;
}

bool is_on_answer_stack() {
  const auto* const memory = static_cast<char*>(pthread_getspecific(answer_stack_key()));
  const auto* const here = static_cast<const char*>(__builtin_frame_address(0));
  return memory != nullptr && here > memory && here < memory + answer_bytes;
}

}  // namespace apenet::shim

// The stack is the one for signals meanwhile, so that those that come use it, too. The kernel restores the
// program's when the handler returns. Signals are blocked while the thread runs on a stack that is not the
// one for signals: a handler would begin at the top of the other, over what stands there.
extern "C" __attribute__((visibility("hidden"), used)) void apenet_answer_on_stack(int number,
                                                                                   siginfo_t* info,
                                                                                   void* context) {
  using apenet::shim::answer_bytes;
  apenet_catches_calls = 0;
  apenet_catches_on = false;
  if (apenet::shim::is_on_answer_stack()) {
    auto* const memory = static_cast<char*>(pthread_getspecific(apenet::shim::answer_stack_key()));
    const int error = errno;
    const stack_t own{.ss_sp = memory, .ss_flags = 0, .ss_size = answer_bytes};
    sigaltstack(&own, nullptr);
    errno = error;
    // The kernel would not restore a stack that has never been set.
    stack_t& theirs = static_cast<ucontext_t*>(context)->uc_stack;
    if (theirs.ss_size == 0) theirs.ss_flags = SS_DISABLE;
  }
  apenet::shim::let_signals_in(static_cast<ucontext_t*>(context)->uc_sigmask);
  apenet::shim::answer_held_signal(number, info, context);
  apenet::shim::let_only_held_signals_in();
  if (apenet_catches_on) apenet_catches_calls = 1;
}

#endif
