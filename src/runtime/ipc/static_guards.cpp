// The guards of static variables in functions of our libraries. Those of libstdc++ wait and wake by
// syscall(), those of libc++ by a mutex of the C library, and the shim takes either for an action in the
// order of the threads (thread_order.hpp). But whether two threads come to the first use of a variable at
// once, the host decides. The shim has other ones (shim/static_guards.cpp). The thread sanitizer has guards
// of its own, from which it learns who waits for whom.
#ifndef __SANITIZE_THREAD__

#include "runtime/ipc/static_guard.hpp"

using apenet::ipc::StaticGuard;

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): names of the C++ ABI
int __cxa_guard_acquire(StaticGuard* guard) {
  return guard->acquire() ? 1 : 0;
}

void __cxa_guard_release(StaticGuard* guard) {
  guard->finish(true);
}

void __cxa_guard_abort(StaticGuard* guard) {
  guard->finish(false);
}
// NOLINTEND(bugprone-reserved-identifier)
}

#endif
