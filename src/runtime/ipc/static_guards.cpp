// The guards of static variables in functions. Those of libstdc++ wait and wake by syscall(), those of libc++
// by a mutex of the C library, and the shim takes either for an action in the order of the threads
// (thread_order.hpp). But whether two threads come to the first use of a variable at once, the host decides.
// The thread sanitizer has guards of its own, from which it learns who waits for whom.
#ifndef __SANITIZE_THREAD__

#include <atomic>
#include <cstdint>

#include "runtime/ipc/futex.hpp"

namespace {

// The first byte of the guard, which the compiler reads, says whether the variable is complete; the word
// behind it is ours (Itanium C++ ABI, 3.3.3).
struct Guard {
  std::atomic<std::uint8_t> is_complete;
  std::atomic<std::uint32_t> state;
};
enum : std::uint32_t { nobody, begun, awaited };

void finish(Guard& guard) {
  if (guard.state.exchange(nobody) == awaited) apenet::ipc::futex_wake(guard.state);
}

}  // namespace

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): names of the C++ ABI
int __cxa_guard_acquire(Guard* guard) {
  while (guard->is_complete.load(std::memory_order_acquire) == 0) {
    std::uint32_t state = nobody;
    if (guard->state.compare_exchange_strong(state, begun)) {
      if (guard->is_complete.load(std::memory_order_acquire) == 0) return 1;
      finish(*guard);
      return 0;
    }
    if (state == begun && !guard->state.compare_exchange_strong(state, awaited)) continue;
    apenet::ipc::futex_wait(guard->state, awaited, nullptr);
  }
  return 0;
}

void __cxa_guard_release(Guard* guard) {
  guard->is_complete.store(1, std::memory_order_release);
  finish(*guard);
}

void __cxa_guard_abort(Guard* guard) {
  finish(*guard);
}
// NOLINTEND(bugprone-reserved-identifier)
}

#endif
