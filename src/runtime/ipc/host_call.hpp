// Direct system calls, because the shim replaces syscall() as well as the clock functions.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace apenet::ipc {

// Makes a system call of up to four arguments without calling any interposed function.
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
