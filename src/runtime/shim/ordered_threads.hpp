// The order of the process's threads (ipc::ThreadOrder), for the functions that the shim replaces.
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "runtime/ipc/client.hpp"
#include "runtime/ipc/thread_order.hpp"

namespace apenet::shim {

// The host decides when this thread acts: one of an OpenMP library, or of the MPI library's launcher.
extern constinit thread_local bool is_unordered __attribute__((tls_model("initial-exec")));

[[nodiscard]] ipc::ThreadOrder& thread_order();
// The calling thread's entry; nullptr if it has none, or if the process has only ever had one thread.
[[nodiscard]] ipc::OrderedThread* ordered_thread();
// Likewise, but enters the first thread of the process into the order, unless is_unordered.
[[nodiscard]] ipc::OrderedThread* enter_order();

// The calling thread ends by a system call, so that the C library calls nobody at its end.
void end_own_life();

// What the order of this process needs, once.
void prepare_order();

// One action of a thread: it happens in order.
class OrderedAction {
 public:
  explicit OrderedAction(ipc::OrderedThread& own) : own_(own) { thread_order().enter(own_); }
  ~OrderedAction();
  OrderedAction(const OrderedAction&) = delete;
  OrderedAction& operator=(const OrderedAction&) = delete;

  // It does not count: whether the thread has it at all, the host decides, and it changes nothing.
  void leave_no_trace() { counts_ = false; }

 private:
  ipc::OrderedThread& own_;
  bool counts_ = true;
};

// The thread has checked for what another process of the order may do, without a wait, and found nothing. A
// loop of such checks without a sleep would never come to the time at which that process goes on: after some
// thousands in a row each takes about as long as it does in the host. Keeps errno.
void charge_empty_check();

// Whether what is written to the file needs no other thread of the process: a file on a disk, or the output
// of the rank. Keeps errno.
[[nodiscard]] bool is_drained(int file);

// A write to a file: an action, unless it may wait in the host. Threads that wait for files of the process
// check them again.
class FileChange {
 public:
  FileChange(int file, std::size_t bytes);
  ~FileChange();
  FileChange(const FileChange&) = delete;
  FileChange& operator=(const FileChange&) = delete;

 private:
  ipc::OrderedThread* own_;
  bool is_action_ = false;
};

// A thread that waits in the host for what has no order.
class OutsideOrder {
 public:
  explicit OutsideOrder(ipc::OrderedThread* own) : own_(own) {
    if (own_ != nullptr) thread_order().go_outside(*own_);
  }
  ~OutsideOrder() {
    if (own_ == nullptr) return;
    const int error = errno;
    thread_order().come_inside(*own_);
    errno = error;
  }
  OutsideOrder(const OutsideOrder&) = delete;
  OutsideOrder& operator=(const OutsideOrder&) = delete;

 private:
  ipc::OrderedThread* own_;
};

// A call of the MPI library: an action from its begin to its end, apart from its waits.
class OrderedCall {
 public:
  explicit OrderedCall(ipc::Client* client)
      : client_(client),
        own_(client == nullptr || !thread_order().has_started() ? nullptr : ordered_thread()) {
    if (own_ != nullptr) thread_order().enter_call(*own_);
  }
  ~OrderedCall() {
    if (own_ != nullptr) thread_order().leave_call(*own_, client_->order_time_ps());
  }
  OrderedCall(const OrderedCall&) = delete;
  OrderedCall& operator=(const OrderedCall&) = delete;

 private:
  ipc::Client* client_;
  ipc::OrderedThread* own_;
};

// The time at which an ordered wait with a limit ends, on the clock of the order.
[[nodiscard]] std::int64_t order_deadline_ps(std::int64_t virtual_ps);

// Within an action of the thread: waits, with a time on the clock of the order. Return an error number.
int lock_ordered(ipc::OrderedThread& own, pthread_mutex_t* mutex, std::int64_t deadline_ps);
int wait_ordered(ipc::OrderedThread& own, pthread_cond_t* condition, pthread_mutex_t* mutex,
                 std::int64_t deadline_ps);
int wait_ordered(ipc::OrderedThread& own, sem_t* semaphore, std::int64_t deadline_ps);
int take_read_ordered(ipc::OrderedThread& own, pthread_rwlock_t* lock, std::int64_t deadline_ps);
int take_write_ordered(ipc::OrderedThread& own, pthread_rwlock_t* lock, std::int64_t deadline_ps);
int join_ordered(ipc::OrderedThread& own, pthread_t thread, void** result, std::int64_t deadline_ps);

// Converts the error of a function of pthread.h to the result of that of threads.h.
[[nodiscard]] constexpr int as_thread_result(int error) {
  switch (error) {
    case 0:
      return thrd_success;
    case EBUSY:
      return thrd_busy;
    case ENOMEM:
      return thrd_nomem;
    case ETIMEDOUT:
      return thrd_timedout;
    default:
      return thrd_error;
  }
}

// Whether other processes may use it, too: then nobody knows its order.
[[nodiscard]] bool is_shared(const pthread_mutex_t* mutex);
[[nodiscard]] bool is_shared(const pthread_cond_t* condition);
[[nodiscard]] bool is_shared(const pthread_rwlock_t* lock);
[[nodiscard]] bool is_shared(const pthread_barrier_t* barrier);
[[nodiscard]] bool is_shared(const volatile pthread_spinlock_t* lock);

// A wait at a condition in the host: whoever signals the condition must tell the host, too, and who waits for
// the mutex of an ordered thread must do so in the host.
class HostConditionWait {
 public:
  HostConditionWait(const pthread_cond_t* condition, const pthread_mutex_t* mutex);
  ~HostConditionWait();
  HostConditionWait(const HostConditionWait&) = delete;
  HostConditionWait& operator=(const HostConditionWait&) = delete;

 private:
  ipc::OrderedThread* own_;
};

}  // namespace apenet::shim
