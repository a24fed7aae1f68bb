#include "runtime/shim/ordered_threads.hpp"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>

#include "runtime/ipc/single_threaded.hpp"
#include "runtime/ipc/thread_order_parts.hpp"
#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/family.hpp"
#include "runtime/shim/file_names.hpp"
#include "runtime/shim/ordered_files.hpp"
#include "runtime/shim/ordered_waits.hpp"
#include "runtime/shim/own_files.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {
namespace {

using ipc::OrderedThread;
using ipc::ThreadOrder;
using ipc::WaitEnds;
using ipc::Woken;

constinit RealFunction<int (*)(pollfd*, nfds_t, int)> real_poll("poll");

// As with sleeps (outside_waits.hpp).
bool host_may_act(std::int64_t passed_ns) {
  const ipc::Client* const client = ipc::Client::attached();
  if (client == nullptr) return false;
  return passed_ns < client->header().outside_patience_ns ||
         (has_children() && read_family().activity == Activity::works);
}

// Before the program registers handlers of its own.
__attribute__((constructor)) void begin_order() {
  prepare_order();
}

}  // namespace

constinit thread_local bool is_unordered = false;

ThreadOrder& thread_order() {
  static constinit ThreadOrder order;
  return order;
}

OrderedThread* ordered_thread() {
  ThreadOrder& order = thread_order();
  return !order.in_use() || host_calls > 0 ? nullptr : order.find(pthread_self());
}

void prepare_order() {
  static std::atomic<bool> is_prepared{false};
  if (is_prepared.exchange(true)) return;
  // Nothing is ordered in the child of a fork, unless it is a process of the order. Handlers run as they were
  // registered: the program's must not find the parent's order.
  pthread_atfork(nullptr, nullptr, [] { thread_order().reset(); });
  thread_order().ask_for_host(host_may_act);
}

OrderedThread* enter_order() {
  if (is_unordered) return nullptr;
  ThreadOrder& order = thread_order();
  OrderedThread* const own = order.find(pthread_self());
  if (own != nullptr) return own;
  prepare_order();
  if (!order.in_use()) {
    if (ipc::OrderTable* const table = ipc::Client::order_table()) order.share(*table);
  }
  ipc::Client* client = ipc::Client::attached();
  if (client != nullptr) client->note_entered();
  return order.adopt(client == nullptr ? 0 : client->order_time_ps());
}

void charge_empty_check() {
  OrderedThread* const own = ordered_thread();
  if (own == nullptr || !thread_order().has_processes()) return;
  constexpr std::uint32_t most_free = 4096;
  constexpr std::int64_t check_ps = 10'000'000;
  static constinit thread_local std::uint32_t checks = 0;
  static constinit thread_local std::int64_t checked_at_ps = 0;
  const int error = errno;
  const std::int64_t now_ps = own->key.clock_ps;
  // Between two checks of a row the program reads the clock at most, or the row of actions takes a moment.
  checks = now_ps - checked_at_ps <= ipc::actions_take_ps ? checks + 1 : 0;
  checked_at_ps = now_ps;
  if (checks > most_free) {
    checked_at_ps = std::min(now_ps + check_ps, ipc::end_of_time_ps);
    thread_order().advance(*own, checked_at_ps);
  }
  errno = error;
}

bool is_drained(int file) {
  const int error = errno;
  struct stat status {};
  const bool is_known = fstat(file, &status) == 0;
  const bool is_output = file == STDOUT_FILENO || file == STDERR_FILENO;
  const bool is =
      is_known && (S_ISREG(status.st_mode) || (is_output && !is_own_file(file) && !is_of_order(file)));
  errno = error;
  return is;
}

FileChange::FileChange(int file, std::size_t bytes) : own_(ordered_thread()) {
  if (own_ == nullptr) return;
  const int error = errno;
  thread_order().enter(*own_);
  pollfd room{.fd = file, .events = POLLOUT, .revents = 0};
  const auto has_room = [&] {
    return bytes <= PIPE_BUF && real_poll(&room, 1, 0) == 1 && room.revents == POLLOUT;
  };
  const bool has_readers = !is_drained(file);
  is_action_ = !has_readers || is_nonblocking(file) || has_room();
  if (has_readers) thread_order().begin_file_change(*own_);
  if (!is_action_) thread_order().leave(*own_, !is_in_call());
  errno = error;
}

FileChange::~FileChange() {
  const void* const object = ipc::Client::own_files_of(thread_order());
  if (own_ == nullptr) {
    if (thread_order().in_use()) thread_order().wake(object, every_thread, nullptr);
    return;
  }
  const int error = errno;
  if (is_action_ || thread_order().count_blocked(object) > 0) {
    if (!is_action_) thread_order().enter(*own_);
    thread_order().end_file_change(*own_);
    thread_order().wake(object, every_thread, own_);
    thread_order().leave(*own_, !is_in_call());
  }
  errno = error;
}

OrderedAction::~OrderedAction() {
  counts_ ? thread_order().leave(own_, !is_in_call()) : thread_order().leave_no_trace(own_);
}

std::int64_t order_deadline_ps(std::int64_t virtual_ps) {
  return ipc::Client::attached()->as_order_time_ps(virtual_ps);
}

Woken block(OrderedThread& own, const volatile void* object, std::int64_t deadline_ps, OrderedThread* owner,
            WaitEnds ends, ipc::HostReadiness* readiness) {
  ipc::Client* const client = ipc::Client::attached();
  VirtualTimers& timers = VirtualTimers::of_process();
  // Beside other threads, one more keeps the time of the timers.
  const std::int64_t due_ps =
      client != nullptr && ipc::is_single_threaded() ? timers.first_ps() : VirtualTimer::never_ps;
  const bool has_timer = due_ps != VirtualTimer::never_ps;
  const std::int64_t until_ps = has_timer ? std::min(deadline_ps, order_deadline_ps(due_ps)) : deadline_ps;
  const Woken woken =
      thread_order().block(own, const_cast<const void*>(object), until_ps, owner, ends, readiness);
  if (woken == Woken::timed_out && client != nullptr) client->pass_until_ps(own.key.clock_ps);
  if (!has_timer || woken != Woken::timed_out || !client->has_due_timer()) return woken;
  const bool is_over = own.key.clock_ps >= deadline_ps;
  // Handlers run outside the action: they may leave it by a jump.
  thread_order().leave(own, !is_in_call());
  timers.fire(*client);
  thread_order().enter(own);
  return is_over ? woken : Woken::interrupted;
}

APENET_EXPORT ipc::ThreadOrder* apenet_thread_order() {
  return &thread_order();
}

}  // namespace apenet::shim
