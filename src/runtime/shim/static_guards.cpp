// The guards of static variables in functions of the program: their first use happens in the order of the
// threads (docs/internals/threads.md), without an action, since a thread that finds the variable complete
// does not call. The thread sanitizer has guards of its own.
#ifndef __SANITIZE_THREAD__

#include "runtime/ipc/static_guard.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/ordered_waits.hpp"
#include "runtime/shim/real.hpp"

// Where the shim itself begins, and where its code ends: the linker's.
extern "C" __attribute__((visibility("hidden")))
const char __ehdr_start;  // NOLINT(bugprone-reserved-identifier)
extern "C" __attribute__((visibility("hidden"))) const char etext;

namespace apenet::shim {
namespace {

using ipc::OrderedThread;
using ipc::StaticGuard;

// The shim's own variables: whether two threads come to them at once, the host decides.
bool is_of_shim(const void* place) {
  return place >= &__ehdr_start && place < &etext;
}

bool acquire_ordered(OrderedThread& own, StaticGuard& guard) {
  OrderedAction action(own);
  action.leave_no_trace();
  while (!guard.is_complete()) {
    if (guard.try_begin()) {
      guard.set_ordered(true);
      return true;
    }
    if (guard.is_ordered()) {
      block(own, &guard, without_limit, nullptr, ipc::WaitEnds::by_thread);
    } else {
      const OutsideAction outside(own);
      guard.wait();
    }
  }
  return false;
}

void finish(StaticGuard& guard, bool has_succeeded) {
  OrderedThread* const own = guard.is_ordered() ? ordered_thread() : nullptr;
  if (own == nullptr) {
    guard.finish(has_succeeded);
    return;
  }
  OrderedAction action(*own);
  action.leave_no_trace();
  guard.set_ordered(false);
  guard.finish(has_succeeded);
  wake(&guard, every_thread, own);
}

}  // namespace

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): names of the C++ ABI
APENET_EXPORT int __cxa_guard_acquire(StaticGuard* guard) {
  if (guard->is_complete()) return 0;
  OrderedThread* const own = is_of_shim(__builtin_return_address(0)) ? nullptr : ordered_thread();
  return (own == nullptr ? guard->acquire() : acquire_ordered(*own, *guard)) ? 1 : 0;
}

APENET_EXPORT void __cxa_guard_release(StaticGuard* guard) {
  finish(*guard, true);
}

APENET_EXPORT void __cxa_guard_abort(StaticGuard* guard) {
  finish(*guard, false);
}
// NOLINTEND(bugprone-reserved-identifier)
}

}  // namespace apenet::shim

#endif
