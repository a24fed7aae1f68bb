// How an ordered thread waits at an object that another thread gives free, and how that one wakes it.
//
// The C library's object keeps the state of a lock: only its operations that do not wait are called, each as
// an action. A thread that would wait is blocked in the order, and tries again when it has been woken.
#pragma once

#include <cerrno>
#include <cstdint>

#include "runtime/shim/ordered_threads.hpp"

namespace apenet::shim {

inline constexpr std::int64_t without_limit = ipc::OrderedThread::no_deadline_ps;
inline constexpr std::uint32_t every_thread = UINT32_MAX;
inline constexpr int waits_in_host = -1;  // no error number: the object is of no order

// Within an action. When the deadline ends the wait, the process has come there, too. The timers of a process
// with one thread are due meanwhile: after their handlers the result is Woken::interrupted, and the caller
// tries again.
ipc::Woken block(ipc::OrderedThread& own, const volatile void* object, std::int64_t deadline_ps,
                 ipc::OrderedThread* owner, ipc::WaitEnds ends, ipc::HostReadiness* readiness = nullptr);

// Within an action: the thread waits in the host, and goes on with the action after that.
class OutsideAction {
 public:
  explicit OutsideAction(ipc::OrderedThread& own) : own_(own) {
    thread_order().leave(own_, false);
    thread_order().go_outside(own_);
  }
  ~OutsideAction() {
    const int error = errno;
    thread_order().enter(own_);
    errno = error;
  }
  OutsideAction(const OutsideAction&) = delete;
  OutsideAction& operator=(const OutsideAction&) = delete;

 private:
  ipc::OrderedThread& own_;
};

// Wakes those that are blocked at the object. `own` may be nullptr.
inline void wake(const volatile void* object, std::uint32_t most, const ipc::OrderedThread* own) {
  thread_order().wake(const_cast<const void*>(object), most, own);
}

// try_it() returns EBUSY if the thread has to wait for whoever wakes the object.
template <typename Object, typename Try>
int take_ordered(ipc::OrderedThread& own, Object* object, std::int64_t deadline_ps, Try try_it) {
  for (;;) {
    const int error = try_it();
    if (error != EBUSY) return error;
    if (block(own, object, deadline_ps, nullptr, ipc::WaitEnds::by_thread) == ipc::Woken::timed_out)
      return ETIMEDOUT;
  }
}

}  // namespace apenet::shim
