// Futex calls on words of the shared mapping (not FUTEX_PRIVATE: the waiter is another process).
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace apenet::ipc {

// Waits while word == expected, at most timeout (nullptr: for ever). Spurious returns are the caller's
// business.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, const timespec* timeout) {
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, timeout, nullptr, 0);
}

inline void futex_wake(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace apenet::ipc
