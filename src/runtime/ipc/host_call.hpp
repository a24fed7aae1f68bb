// System calls of our own: the shim stands in front of syscall(), as it does in front of the clocks.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace apenet::ipc {

// A system call of up to four arguments, past whatever stands in front of the C library's function.
template <typename First, typename Second>
inline int host_call(long number, First first, Second second, std::uint64_t third = 0,
                     const void* fourth = nullptr) {
#if defined(__x86_64__)
  std::int64_t result = 0;
  register const void* const r10 __asm__("r10") = fourth;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(first), "S"(second), "d"(third), "r"(r10)
                   : "rcx", "r11", "memory");
  if (result >= 0) return static_cast<int>(result);
  errno = static_cast<int>(-result);
  return -1;
#else
  return static_cast<int>(syscall(number, first, second, third, fourth));
#endif
}

}  // namespace apenet::ipc
