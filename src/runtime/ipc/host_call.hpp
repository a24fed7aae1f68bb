// Direct system calls, because the shim replaces syscall() as well as the clock functions.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace apenet::ipc {

// Stands before each system call of the simulator's own, so that the shim does not take it for the program's
// (shim/direct_calls.cpp): an instruction without effect.
#define APENET_OWN_CALL "nopl 0x6170656e(%%rax)\n\t"

// Makes a system call without calling any interposed function.
template <typename First, typename Second>
inline int host_call(long number, First first, Second second, std::uint64_t third = 0,
                     const void* fourth = nullptr, std::uint64_t fifth = 0, std::uint64_t sixth = 0) {
#if defined(__x86_64__)
  std::int64_t result = 0;
  register const void* const r10 __asm__("r10") = fourth;
  register const std::uint64_t r8 __asm__("r8") = fifth;
  register const std::uint64_t r9 __asm__("r9") = sixth;
  __asm__ volatile(APENET_OWN_CALL "syscall"
                   : "=a"(result)
                   : "a"(number), "D"(first), "S"(second), "d"(third), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  if (result >= 0) return static_cast<int>(result);
  errno = static_cast<int>(-result);
  return -1;
#else
  return static_cast<int>(syscall(number, first, second, third, fourth, fifth, sixth));
#endif
}

}  // namespace apenet::ipc
