// Processes of the order that a signal has stopped, and that go on.
#include <algorithm>

#include "runtime/ipc/thread_order_parts.hpp"

namespace apenet::ipc {

void ThreadOrder::note_stopped(std::uint32_t process) {
  Guard guard(*this);
  const ActionKey at = table_->acting != 0 ? acting()->key : ActionKey{.clock_ps = now_ps()};
  for_each([&](OrderedThread& thread) {
    if (thread.process != process) return;
    thread.is_stopped = true;
    thread.stopped_at = at;
  });
  tell_parent(process, at);
  note_settled();
  dispatch();
}

bool ThreadOrder::has_stopped(std::uint32_t process) {
  Guard guard(*this);
  bool has = false;
  for_each(
      [&](const OrderedThread& thread) { has = has || (thread.process == process && thread.is_stopped); });
  return has;
}

void ThreadOrder::note_continued(std::uint32_t process, const OrderedThread& from) {
  Guard guard(*this);
  for_each([&](OrderedThread& thread) {
    if (thread.process != process || !thread.is_stopped) return;
    thread.is_stopped = false;
    const bool waits = thread.acts == ThreadActs::blocked;
    if (waits && thread.key < thread.stopped_at) {  // a limit that has passed meanwhile ends the wait now
      thread.deadline_ps = std::max(thread.deadline_ps, from.key.clock_ps);
      return;
    }
    if (!waits && thread.acts != ThreadActs::running && thread.acts != ThreadActs::at_gate) return;
    // The host has stopped it a moment later: the wait begins now.
    if (waits && thread.deadline_ps != OrderedThread::no_deadline_ps) {
      const std::int64_t later_ps = std::max<std::int64_t>(from.key.clock_ps - thread.key.clock_ps, 0);
      thread.deadline_ps =
          std::min(thread.deadline_ps, OrderedThread::no_deadline_ps - 1 - later_ps) + later_ps;
    }
    const std::uint32_t number = thread.key.number;
    thread.key = std::max(thread.key, from.key);
    thread.key.number = number;
    thread.settled_key = thread.key;
  });
  tell_parent(process, from.key);
  dispatch();
}

void ThreadOrder::tell_parent(std::uint32_t process, const ActionKey& at) {
  const OrderedThread* first = nullptr;
  for_each([&](const OrderedThread& thread) {
    if (thread.process == process && thread.leads) first = &thread;
  });
  if (first == nullptr) return;
  for_each([&](OrderedThread& thread) {
    const bool waits = thread.acts == ThreadActs::blocked && thread.awaits_process && thread.hears_of_stops;
    if (waits && thread.process == first->parent) unblock(thread, at, Woken::signalled);
  });
}

}  // namespace apenet::ipc
