// syscall(): redirects the time calls of programs that make system calls directly.
//
// All other calls pass as in the C library's function, without a stack frame of ours, because the child of
// syscall(SYS_vfork) returns through it.
#if defined(__x86_64__)

#include <sys/syscall.h>
#include <sys/time.h>

#include <cerrno>
#include <ctime>

#include "runtime/shim/host_caller.hpp"

#define APENET_HIDDEN extern "C" __attribute__((visibility("hidden"), used))

APENET_HIDDEN long apenet_time_call(long number, long first, long second, long third, long fourth) {
  APENET_TIME_CALL;
  const auto clock = static_cast<clockid_t>(first);
  switch (number) {
    case SYS_clock_gettime:
      return clock_gettime(clock, reinterpret_cast<timespec*>(second));
    case SYS_clock_getres:
      return clock_getres(clock, reinterpret_cast<timespec*>(second));
    case SYS_gettimeofday:
      return gettimeofday(reinterpret_cast<timeval*>(first), reinterpret_cast<void*>(second));
    case SYS_time:
      return time(reinterpret_cast<time_t*>(first));
    case SYS_nanosleep:
      return nanosleep(reinterpret_cast<const timespec*>(first), reinterpret_cast<timespec*>(second));
    default: {  // clock_nanosleep
      const int error =
          clock_nanosleep(clock, static_cast<int>(second), reinterpret_cast<const timespec*>(third),
                          reinterpret_cast<timespec*>(fourth));
      if (error == 0) return 0;
      errno = error;
      return -1;
    }
  }
}

APENET_HIDDEN long apenet_call_failed(long negative_error) {
  errno = static_cast<int>(-negative_error);
  return -1;
}

static_assert(SYS_nanosleep == 35 && SYS_gettimeofday == 96 && SYS_time == 201 && SYS_clock_gettime == 228 &&
              SYS_clock_getres == 229 && SYS_clock_nanosleep == 230);

__asm__(R"(
    .text
    .globl  syscall
    .type   syscall, @function
syscall:
    .cfi_startproc
    endbr64
    cmpq    $35, %rdi
    je      1f
    cmpq    $96, %rdi
    je      1f
    cmpq    $201, %rdi
    je      1f
    cmpq    $228, %rdi
    jb      0f
    cmpq    $230, %rdi
    jbe     1f
0:  movq    %rdi, %rax
    movq    %rsi, %rdi
    movq    %rdx, %rsi
    movq    %rcx, %rdx
    movq    %r8, %r10
    movq    %r9, %r8
    movq    8(%rsp), %r9
    syscall
    cmpq    $-4095, %rax
    jae     2f
    ret
1:  jmp     apenet_time_call
2:  movq    %rax, %rdi
    jmp     apenet_call_failed
    .cfi_endproc
    .size   syscall, .-syscall
)");

#endif
