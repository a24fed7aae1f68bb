// Futex calls on words of the shared mapping. Not FUTEX_PRIVATE, because the waiter is another process.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

#include "runtime/ipc/host_call.hpp"

namespace apenet::ipc {

// Waits while word == expected, at most for `timeout` (nullptr: forever). May return spuriously; the caller
// must check.
inline int futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, const timespec* timeout) {
  return host_call(SYS_futex, &word, FUTEX_WAIT, expected, timeout);
}

inline void futex_wake(std::atomic<std::uint32_t>& word, int most = INT_MAX) {
  host_call(SYS_futex, &word, FUTEX_WAKE, most);
}

}  // namespace apenet::ipc
