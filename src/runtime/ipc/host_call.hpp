// Direct system calls, because the shim replaces syscall() as well as the clock functions.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <type_traits>

// The shim defines it (shim/direct_calls.cpp). In a process whose direct calls are caught: the C library's
// syscall(), whose call is not caught; else nullptr.
using ApenetSystemCall = long (*)(long, ...);
extern "C" __attribute__((weak)) ApenetSystemCall apenet_uncaught_call();

namespace apenet::ipc {

// Stands before each system call of the simulator's own, so that the shim does not take it for the program's
// (shim/direct_calls.cpp): an instruction without effect.
#if defined(__x86_64__)
#define APENET_OWN_CALL "nopl 0x6170656e(%%rax)\n\t"
#elif defined(__aarch64__)
#define APENET_OWN_CALL "mov x8, x8\n\t"
#endif

// The register's value for an argument of a system call.
template <typename Value>
inline std::int64_t as_word(Value value) {
  if constexpr (std::is_integral_v<Value> || std::is_enum_v<Value>) {
    return static_cast<std::int64_t>(value);
  } else {  // also nullptr
    return reinterpret_cast<std::int64_t>(value);
  }
}

// Makes a system call without calling any interposed function.
template <typename First, typename Second>
inline int host_call(long number, First first, Second second, std::uint64_t third = 0,
                     const void* fourth = nullptr, std::uint64_t fifth = 0, std::uint64_t sixth = 0) {
#if defined(__x86_64__)
  if (apenet_uncaught_call != nullptr) {
    if (const ApenetSystemCall call = apenet_uncaught_call(); call != nullptr) [[unlikely]]
      return static_cast<int>(call(number, as_word(first), as_word(second), third, fourth, fifth, sixth));
  }
  std::int64_t result = 0;
  register const void* const r10 __asm__("r10") = fourth;
  register const std::uint64_t r8 __asm__("r8") = fifth;
  register const std::uint64_t r9 __asm__("r9") = sixth;
  __asm__ volatile(APENET_OWN_CALL "syscall"
                   : "=a"(result)
                   : "a"(number), "D"(first), "S"(second), "d"(third), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  const std::int64_t first_word = as_word(first);  // before the registers are in use
  const std::int64_t second_word = as_word(second);
  register std::int64_t result __asm__("x0") = first_word;
  register const std::int64_t x1 __asm__("x1") = second_word;
  register const std::uint64_t x2 __asm__("x2") = third;
  register const void* const x3 __asm__("x3") = fourth;
  register const std::uint64_t x4 __asm__("x4") = fifth;
  register const std::uint64_t x5 __asm__("x5") = sixth;
  register const long x8 __asm__("x8") = number;
  __asm__ volatile(APENET_OWN_CALL "svc #0"
                   : "+r"(result)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
#endif
  if (result >= 0) return static_cast<int>(result);
  errno = static_cast<int>(-result);
  return -1;
}

// As poll() without a wait.
inline int poll_now(pollfd* files, std::size_t count) {
  timespec no_wait{};  // the kernel may write there
  return host_call(SYS_ppoll, files, count, reinterpret_cast<std::uint64_t>(&no_wait));
}

inline int read_link(const char* path, char* text, std::size_t bytes) {
  return host_call(SYS_readlinkat, AT_FDCWD, path, reinterpret_cast<std::uint64_t>(text),
                   reinterpret_cast<const void*>(bytes));  // NOLINT(performance-no-int-to-ptr)
}

inline bool is_executable(const char* path) {
  return host_call(SYS_faccessat, AT_FDCWD, path, X_OK) == 0;
}

}  // namespace apenet::ipc
