// Processes of the order that a signal has stopped, and that go on.
#include <algorithm>
#include <utility>

#include "runtime/ipc/single_threaded.hpp"
#include "runtime/ipc/thread_order_parts.hpp"

namespace apenet::ipc {
namespace {

// The host does at once what is awaited.
constexpr std::int64_t pause_ns = 200'000;
constexpr int most_pauses = 10'000;

}  // namespace

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

void ThreadOrder::announce_stop(std::uint32_t process, const OrderedThread& from) {
  const OrderedThread* told = nullptr;
  {
    Guard guard(*this);
    const OrderedThread* const first = first_of(process);
    OrderedThread* const receiver = first == nullptr ? nullptr : receiver_of_end(first->parent);
    if (receiver == nullptr || receiver == &from) return;
    const bool hears = hears_signals(*receiver);
    if (!hears && !receiver->checks_files) return;
    if (hears) {
      ask_one(*receiver, SIGCHLD, from.key);
    } else {
      receiver->signal_at_check = SIGCHLD;
    }
    receiver->is_asked_for_stop = true;
    told = receiver;
  }
  for (int i = 0; i < most_pauses; ++i) {
    {
      const Guard guard(*this);
      if (!told->is_asked_for_stop || told->asked_signal == 0) return;
    }
    const timespec pause = pause_of(pause_ns / 4);
    host_call(SYS_nanosleep, &pause, static_cast<timespec*>(nullptr));
  }
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
    thread.continued_ps = from.key.clock_ps;
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
  const OrderedThread* const first = first_of(process);
  if (first == nullptr) return;
  for_each([&](OrderedThread& thread) {
    const bool waits = thread.acts == ThreadActs::blocked && thread.awaits_process && thread.hears_of_stops;
    if (waits && thread.process == first->parent) unblock(thread, at, Woken::signalled);
  });
}

OrderedThread* ThreadOrder::first_of(std::uint32_t process) {
  OrderedThread* first = nullptr;
  for_each([&](OrderedThread& thread) {
    if (thread.process == process && thread.leads) first = &thread;
  });
  return first;
}

// A child is about to be stopped, or to go on: the host sends the signal then, if the process wants it.
void ThreadOrder::hear_of_stop(OrderedThread& own, Guard& guard) {
  own.is_asked_for_stop = false;
  const bool handles = guard.lets_in(SIGCHLD);
  bool has_come = false;
  if (guard.gets_stop_signals()) {
    // Another thread may take it.
    const int most = is_single_threaded() ? most_pauses : most_pauses / 100;
    for (int i = 0; i < most && !has_come && own.asked_signal != 0; ++i)
      has_come = guard.has_come(SIGCHLD, pause_ns);
  }
  if (std::exchange(own.asked_signal, 0) == 0) return;  // its handler has acted, and ended the wait
  own.acts = ThreadActs::blocked;
  const bool is_over = own.awaits_process && own.hears_of_stops;
  const bool is_interrupted = handles && has_come && end_by_signal(own.ends);
  const bool has_signal = has_come && own.readiness != nullptr && own.readiness->is_there();
  if (is_over || is_interrupted || has_signal) {
    own.ends = WaitEnds::by_thread;
    own.ended_by = is_over || !is_interrupted ? 0 : SIGCHLD;
    unblock(own, own.asked_from, is_over || !is_interrupted ? Woken::signalled : Woken::interrupted);
  }
  note_settled();
  dispatch();
}

}  // namespace apenet::ipc
