#include "runtime/ipc/thread_order.hpp"

#include <algorithm>
#include <utility>

#include "runtime/ipc/futex.hpp"
#include "runtime/ipc/thread_order_parts.hpp"

namespace apenet::ipc {
namespace {

// After so many actions at one time, the next one takes time (actions_take_ps): threads that poll memory, or
// take a lock, again and again come to the time at which another one sleeps.
constexpr std::uint32_t most_actions = 4096;

}  // namespace

ActionKey ThreadOrder::acts_at(const OrderedThread& thread) {
  if (thread.acts != ThreadActs::blocked || thread.deadline_ps <= thread.key.clock_ps) return thread.key;
  return {.clock_ps = thread.deadline_ps, .round = 0, .number = thread.key.number};
}

bool ThreadOrder::may_act(const OrderedThread& thread) {
  if (thread.is_stopped) return false;
  switch (thread.acts) {
    case ThreadActs::running:
    case ThreadActs::at_gate:
    case ThreadActs::acting:
    case ThreadActs::ending:
      return true;
    case ThreadActs::blocked:
      return thread.deadline_ps != OrderedThread::no_deadline_ps;
    case ThreadActs::free:
    case ThreadActs::outside:
    case ThreadActs::at_file:
    case ThreadActs::ended:
      break;
  }
  return false;
}

OrderedThread* ThreadOrder::least() {
  OrderedThread* first = nullptr;
  for_each([&](OrderedThread& thread) {
    if (may_act(thread) && (first == nullptr || acts_at(thread) < acts_at(*first))) first = &thread;
  });
  return first;
}

OrderedThread* ThreadOrder::runs_beside(const OrderedThread& next) {
  if (!next.runs_alone) return nullptr;
  OrderedThread* beside = nullptr;
  for_each([&](OrderedThread& thread) {
    const bool runs =
        thread.acts == ThreadActs::running && thread.process == next.process && !thread.is_stopped;
    if (runs && &thread != &next && (beside == nullptr || thread.key < beside->key)) beside = &thread;
  });
  return beside;
}

// For whom those wait that want to act.
OrderedThread* ThreadOrder::awaited() {
  OrderedThread* const first = least();
  if (first == nullptr || first->acts == ThreadActs::running) return first;
  OrderedThread* const beside = runs_beside(*first);
  return beside == nullptr ? first : beside;
}

// Before virtual time begins.
OrderedThread* ThreadOrder::first_to_come() {
  OrderedThread* first = nullptr;
  for_each([&](OrderedThread& thread) {
    const bool waits = thread.acts == ThreadActs::at_gate;
    if (waits && (first == nullptr || thread.ticket < first->ticket)) first = &thread;
  });
  return first;
}

// The first of the threads that wait to act.
OrderedThread* ThreadOrder::first_to_wait() {
  OrderedThread* first = nullptr;
  for_each([&](OrderedThread& thread) {
    const bool waits = may_act(thread) && thread.acts != ThreadActs::running &&
                       thread.acts != ThreadActs::ending && !is_acting(thread);
    if (waits && (first == nullptr || acts_at(thread) < acts_at(*first))) first = &thread;
  });
  return first;
}

// Lets the next thread act, if it is known which one that is.
void ThreadOrder::dispatch() {
  if (table_->acting != 0) return;
  OrderedThread* first = table_->has_started ? least() : first_to_come();
  for (; first != nullptr && first->acts == ThreadActs::ending; first = least()) end_process(*first);
  if (first == nullptr && !may_any_act()) wake_paced();
  if (first == nullptr || first->acts == ThreadActs::running) return;
  if (table_->has_started && runs_beside(*first) != nullptr) return;
  if (acts_at(*first).clock_ps > now_ps() && awaits_host(*first)) {  // it lets real time pass
    wake_one(*first);
    return;
  }
  grant(*first, first->acts == ThreadActs::blocked ? Woken::timed_out : first->woken);
}

// Nobody knows at which virtual time that comes for which a thread waits in the host. If it is the first
// thread, all others let real time pass. Otherwise only one that waits for another thread with a limit does.
bool ThreadOrder::awaits_host(const OrderedThread& next) {
  bool first_awaits = false;
  bool one_awaits = false;
  for_each([&](const OrderedThread& thread) {
    if (thread.acts != ThreadActs::outside || !thread.awaits_host) return;
    (thread.key.number == 0 ? first_awaits : one_awaits) = true;
  });
  if (!table_->has_started) return false;
  const bool awaits_thread = next.acts == ThreadActs::blocked && next.object != OrderObject{};
  return first_awaits ||
         (one_awaits && awaits_thread && host_may_act_ != nullptr && host_may_act_(table_->passed_ns));
}

void ThreadOrder::grant(OrderedThread& thread, Woken woken) {
  thread.key = acts_at(thread);
  thread.settled_key = thread.key;
  thread.object = {};
  thread.owner = 0;
  thread.awaits_process = false;
  thread.deadline_ps = OrderedThread::no_deadline_ps;
  thread.acts = ThreadActs::acting;
  thread.taking = {};
  thread.woken = woken;
  table_->acting = place_of(&thread);
  if (thread.key.clock_ps > now_ps()) table_->now_ps.store(thread.key.clock_ps, std::memory_order_relaxed);
  thread.grants.fetch_add(1);
  word_of(thread).fetch_add(1);
  if (selves_[index_of(thread)].load(std::memory_order_relaxed) == pthread_self()) return;
  if (granted_ != nullptr) futex_wake(*granted_);
  granted_ = &word_of(thread);
}

bool ThreadOrder::may_any_act() {
  return table_->acting != 0 || least() != nullptr;
}

// Nobody can act any more: a deadlock is found among waits that have no limit.
void ThreadOrder::wake_paced() {
  for_each([&](OrderedThread& thread) {
    if (std::exchange(thread.is_paced, false)) wake_one(thread);
  });
}

void ThreadOrder::wake_one(OrderedThread& thread) {
  word_of(thread).fetch_add(1);
  futex_wake(word_of(thread));
}

void ThreadOrder::enter_call(OrderedThread& own) {
  if (own.call_depth == 0) {
    enter(own);
    own.locks = 0;
  }
  ++own.call_depth;
}

void ThreadOrder::leave_call(OrderedThread& own, std::int64_t clock_ps) {
  if (own.call_depth == 0) return;  // a signal's handler has ended the call by a jump
  --own.call_depth;
  if (own.call_depth > 0) return;
  own.owes_way = false;
  leave(own, clock_ps, true);
}

// A handler acts, in a wait: no earlier than the process that has sent its signal, or has ended. The host may
// tell of either before the order does.
void ThreadOrder::come_to_signal(OrderedThread& own) {
  if (own.acts != ThreadActs::blocked || own.mark == nullptr) return;
  ActionKey from = own.signal_to_come != 0 ? own.asked_from : ActionKey{};
  if (has_processes()) {
    if (own.signal_to_come == 0) from.clock_ps = now_ps();
    note_ended_processes();
    for_each([&](const OrderedThread& thread) {
      if (thread.acts == ThreadActs::ending && is_child(thread, 0)) from = std::max(from, thread.key);
    });
  }
  from.number = own.key.number;
  own.key = std::max(own.key, from);
}

void ThreadOrder::come_to_time_of_handler(OrderedThread& own) {
  if (own.mark == nullptr) return;
  Guard guard(*this);
  if (guard.is_nested()) return;
  come_to_signal(own);
  if (own.asked_signal != 0) {
    ActionKey from = own.asked_from;
    from.number = own.key.number;
    own.key = std::max(own.key, from);
  }
  dispatch();
}

// Whether the thread begins an action: it may be in one.
bool ThreadOrder::begins(OrderedThread& own, const Guard& guard) {
  own.is_stopped = false;
  if (guard.is_nested()) {
    ++own.depth;
    return false;
  }
  come_to_signal(own);
  if (const int signal = std::exchange(own.asked_signal, 0);
      signal != 0) {  // its handler calls, or has jumped
    own.acts = ThreadActs::blocked;
    own.key = std::max(own.key, ActionKey{.clock_ps = own.asked_from.clock_ps,
                                          .round = own.asked_from.round,
                                          .number = own.key.number});
    // It returns to the wait, which is over: nobody else may take it for one that goes on.
    if (end_by_signal(own.ends) && own.mark != nullptr && !has_jumped(own)) {
      own.ends = WaitEnds::by_thread;
      own.ended_by = signal;
      unblock(own, own.asked_from, Woken::interrupted);
      note_settled();
      dispatch();
    }
  }
  const bool is_parked = own.acts == ThreadActs::at_gate || own.acts == ThreadActs::blocked;
  if (is_parked && own.mark != nullptr && has_jumped(own)) {
    own.object = {};
    own.owner = 0;
    own.awaits_process = false;
    own.checks_files = false;
    own.deadline_ps = OrderedThread::no_deadline_ps;
    own.depth = 0;
    own.acts = ThreadActs::running;
    own.key = std::max(own.key, ActionKey{.clock_ps = now_ps(), .round = 0, .number = own.key.number});
  }
  if (own.acts == ThreadActs::at_file) come_from_file(own);
  if (own.acts != ThreadActs::running && own.acts != ThreadActs::outside) {
    ++own.depth;
    return false;
  }
  if (own.acts == ThreadActs::outside) come_back(own);
  ++own.actions;
  return true;
}

void ThreadOrder::enter(OrderedThread& own) {
  if (own.owes_way && own.locks == 0 && own.depth == 0) {
    own.owes_way = false;
    give_way(own);
  }
  {
    Guard guard(*this);
    if (!begins(own, guard)) return;
    if (own.call_depth > 0) own.depth = 1;  // the call goes on after it
    if (table_->acting == 0 && (!table_->has_started || (least() == &own && runs_beside(own) == nullptr))) {
      own.acts = ThreadActs::acting;
      own.settled_key = own.key;
      table_->acting = place_of(&own);
      if (own.key.clock_ps > now_ps()) table_->now_ps.store(own.key.clock_ps, std::memory_order_relaxed);
      return;
    }
  }
  Guard guard(*this, Guard::Signals::wait);
  if (own.acts != ThreadActs::running) return;  // a handler has jumped
  own.acts = ThreadActs::at_gate;
  own.ticket = ++table_->tickets;
  own.woken = Woken::no;
  own.ends = WaitEnds::by_thread;
  note_settled();
  dispatch();
  park(own, guard);
}

Woken ThreadOrder::enter_at(OrderedThread& own, std::int64_t clock_ps, WaitEnds ends) {
  Guard guard(*this, Guard::Signals::wait);
  const bool is_in_call = !guard.is_nested() && is_between_actions_of_call(own);
  if (is_in_call) {
    table_->acting = 0;
  } else if (!begins(own, guard)) {
    return Woken::no;
  }
  if (is_in_call) ++own.actions;
  if (own.call_depth > 0) own.depth = 1;
  own.acts = ThreadActs::blocked;  // at nothing
  own.ticket = ++table_->tickets;
  own.deadline_ps = clock_ps;
  own.woken = Woken::no;
  own.ends = ends;
  if (!own.writes_nothing) wake_readers(own.key);
  note_settled();
  dispatch();
  return park(own, guard);
}

void ThreadOrder::leave(OrderedThread& own, std::int64_t clock_ps, bool is_of_program) {
  if (own.gives_way && own.depth == 0) settle_before_step(own);
  {
    Guard guard(*this);
    if (own.depth == 0) {
      end_action(own, clock_ps, is_of_program);
      return;
    }
    --own.depth;
    if (own.acts != ThreadActs::acting) return;
    if (clock_ps > own.key.clock_ps) own.key = {.clock_ps = clock_ps, .round = 0, .number = own.key.number};
    if (!std::exchange(own.gives_way, false)) return;
  }
  give_way(own);
}

void ThreadOrder::leave_no_trace(OrderedThread& own) {
  Guard guard(*this);
  if (own.depth > 0) {
    --own.depth;
  } else if (own.acts == ThreadActs::acting) {
    own.acts = ThreadActs::running;
    table_->acting = 0;
    dispatch();
  }
}

void ThreadOrder::end_action(OrderedThread& own, std::int64_t clock_ps, bool is_of_program) {
  if (own.acts != ThreadActs::acting) return;
  clock_ps = std::max(clock_ps, own.key.clock_ps);
  if (std::exchange(own.counted_at_ps, clock_ps) != clock_ps) own.program_actions = 0;
  if (is_of_program && ++own.program_actions >= most_actions) clock_ps += actions_take_ps;
  const bool has_moved = clock_ps > own.key.clock_ps;
  if (has_moved) own.key = {.clock_ps = clock_ps, .round = 0, .number = own.key.number};
  if (std::exchange(own.gives_way, false)) {
    queue_behind_others(own);
  } else if (!has_moved) {
    ++own.key.round;
  }
  own.settled_key = own.key;
  own.acts = ThreadActs::running;
  table_->acting = 0;
  dispatch();
}

void ThreadOrder::advance(OrderedThread& own, std::int64_t clock_ps) {
  Guard guard(*this);
  if (guard.is_nested() || clock_ps <= own.key.clock_ps) return;
  own.key = {.clock_ps = clock_ps, .round = 0, .number = own.key.number};
  dispatch();
}

}  // namespace apenet::ipc
