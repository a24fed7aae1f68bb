#include "runtime/ipc/thread_order.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>

#include "runtime/ipc/futex.hpp"
#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/thread_order_parts.hpp"

namespace apenet::ipc {
namespace {

// After so many actions at one time, the next one takes time (actions_take_ps): threads that poll memory, or
// take a lock, again and again come to the time at which another one sleeps.
constexpr std::uint32_t most_actions = 4096;

constexpr std::int64_t idle_pause_ns = 500'000'000;

constexpr std::uint64_t mark_word = 0x6f72646572206f66;

// A handler of a signal has left the wait by a jump: what the thread has called since has overwritten the
// mark that the wait keeps on the stack.
bool has_jumped(const OrderedThread& own) {
  stack_t stack{};
  const bool is_on_other = sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0;
  if (!is_on_other && __builtin_frame_address(0) > static_cast<const void*>(own.mark)) return true;
  return std::any_of(own.mark->begin(), own.mark->end(),
                     [](std::uint64_t word) { return word != mark_word; });
}

class Mark {
 public:
  explicit Mark(OrderedThread& own) : own_(own) {
    words_.fill(mark_word);
    own_.mark = &words_;
    __asm__ volatile("" : : "r"(&words_) : "memory");  // somebody may read it
  }
  ~Mark() { own_.mark = nullptr; }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

 private:
  OrderedThread& own_;
  ParkMark words_;
};

}  // namespace

// While a thread waits for something of the host, waits of others may take as long there as in virtual time.
class ThreadOrder::HostPace {
 public:
  // The rest of a sleep from now_ps to until_ps, which begins with the first call with this now_ps.
  [[nodiscard]] std::int64_t left_ns(std::int64_t now_ps, std::int64_t until_ps) {
    if (now_ps != from_ps_) {
      from_ps_ = now_ps;
      began_ns_ = host_now_ns();
    }
    return (until_ps - now_ps) / 1000 - (host_now_ns() - began_ns_);
  }

 private:
  std::int64_t from_ps_ = -1;
  std::int64_t began_ns_ = 0;
};

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

// The thread acts next, or nobody does and it waits for the end of a process: the one that acts now may be
// blocked in the host.
bool ThreadOrder::awaits_file_of_other(const OrderedThread& own) {
  if (table_->acting == 0 || !acting()->may_wait_at_file) return false;
  const OrderedThread* const next = first_to_wait();
  return next == &own || (next == nullptr && own.awaits_process);
}

// Processes close files when they end, and may leave the locks that they have.
bool ThreadOrder::may_end_with_process(const OrderedThread& own) const {
  return own.object == name_of(files()) || own.object.is_shared();
}

// Nobody can act before a thread comes back from outside: maybe a deadlock, which the simulator finds if the
// wait has no limit.
bool ThreadOrder::is_hopeless(const OrderedThread& own) {
  const bool is_left_to_host =
      own.readiness != nullptr || own.awaits_process || own.object == name_of(files());
  if (may_any_act() || is_left_to_host || own.ends == WaitEnds::by_signal) return false;
  return own.acts == ThreadActs::blocked;
}

// A thread changes it, or has been woken at it and has yet to take it.
bool ThreadOrder::is_being_changed(const OrderedThread& own) {
  bool is = table_->acting != 0;
  for_each([&](const OrderedThread& thread) {
    is = is || (thread.acts == ThreadActs::at_gate && thread.taking == own.object);
  });
  return is;
}

void ThreadOrder::note_wait(const OrderedThread& own) {
  ThreadWord& word = (*words_)[index_of(own)];
  word.mark = ThreadWord::marks_one;
  const OrderedThread* other = at_place(own.owner);
  if (own.acts == ThreadActs::at_gate) {
    word.awaits = ThreadWord::Awaits::order;
    other = table_->acting != 0 ? acting() : awaited();
  } else if (own.object == OrderObject{}) {
    word.awaits = ThreadWord::Awaits::time;
  } else {
    word.awaits = ThreadWord::Awaits::object;
    const auto is_joined = [this, &own](const OrderedThread& thread) {
      return own.object == name_of(&thread);
    };
    const auto* const joined = std::find_if(table_->threads.begin(), table_->threads.end(), is_joined);
    if (joined != table_->threads.end()) other = joined;
  }
  word.thread_id = other == nullptr ? 0 : other->id.load(std::memory_order_relaxed);
}

// Waits until the thread acts.
Woken ThreadOrder::park(OrderedThread& own, Guard& guard) {
  const std::int64_t longest_ns = has_processes() ? most_process_pause_ns : most_pause_ns;
  std::int64_t pause_ns = has_processes() ? first_process_pause_ns : first_pause_ns;
  std::int64_t checked_ns = 0;
  const Mark mark(own);
  SeenProgress progress;
  HostPace pace;
  // Nobody can act: what ends this wait comes from the host, if anything does. Those that wait for files go
  // first, and their parents then learn of it. A lock is the host's matter if others may come to use it.
  // While another process is in the host, what it writes there shall come in order; but not for ever, because
  // the simulator would not see that all of them wait for each other.
  constexpr std::int64_t patience_ns = 1'000'000'000;
  std::int64_t began_ns = 0;
  const auto is_left_to_host = [&] {
    const bool reads = own.object == name_of(files());
    if (!has_processes() || may_any_act()) return false;
    if (began_ns == 0) began_ns = host_now_ns();
    const bool is_named = own.readiness != nullptr && own.object.is_shared();
    bool is_left = own.acts == ThreadActs::blocked && (reads || own.awaits_process || is_named);
    for_each([&](const OrderedThread& thread) {
      const bool goes_first =
          !reads && thread.acts == ThreadActs::blocked && thread.object == name_of(files());
      const bool may_write =
          thread.acts == ThreadActs::outside && (!reads || host_now_ns() - began_ns < patience_ns);
      if (may_write || goes_first) is_left = false;
    });
    return is_left;
  };
  while (own.acts != ThreadActs::acting) {
    std::atomic<std::uint32_t>& word = word_of(own);
    const std::uint32_t before = word.load();
    const bool is_next = table_->acting == 0 && first_to_wait() == &own;
    // Nobody but those who wait sees that a process has ended.
    const bool awaits_end = own.awaits_process || may_end_with_process(own);
    const bool is_file_next = awaits_file_of_other(own);
    const bool awaits_call = own.acts == ThreadActs::at_gate && table_->acting != 0 &&
                             is_between_actions_of_call(*acting()) && first_to_wait() == &own;
    // A process may be ending, after what one that runs may do.
    const bool is_last = has_processes() && table_->acting == 0 && awaits_end && first_to_wait() == nullptr;
    const bool checks =
        is_next || is_file_next || (has_processes() && (awaits_end || first_to_wait() == &own));
    const bool is_idle = own.ends == WaitEnds::by_signal || has_processes() ||
                         own.deadline_ps != OrderedThread::no_deadline_ps;
    // One that acts may spin until this thread, which it wakes, changes memory.
    own.is_paced = own.acts == ThreadActs::blocked && !checks && !is_idle && may_any_act();
    timespec pause = pause_of(is_hopeless(own)                  ? 0
                              : checks                          ? pause_ns
                              : own.acts == ThreadActs::at_gate ? most_pause_ns
                              : is_idle || own.is_paced         ? idle_pause_ns
                                                                : 0);
    const bool lets_pass = is_next && awaited() == &own;
    const std::int64_t paused_ns = lets_pass ? host_now_ns() : 0;
    if (lets_pass) {  // what comes from the host may come before
      const std::int64_t left_ns = pace.left_ns(now_ps(), acts_at(own).clock_ps);
      if (left_ns <= 0 || !awaits_host(own)) {
        grant(own, own.acts == ThreadActs::blocked ? Woken::timed_out : own.woken);
        break;
      }
      pause = pause_of(std::min(left_ns, most_pause_ns));
    }
    const auto has_checked_long = [&] {
      checked_ns += pause.tv_nsec;
      return checked_ns >= idle_pause_ns;
    };
    bool is_interrupted = guard.has_signal();
    const bool is_asked = own.asked_signal != 0;
    const std::uint32_t grants = own.grants.load(std::memory_order_relaxed);
    note_wait(own);
    guard.unlock();
    // With a time limit, the host always tells of a signal that was handled.
    const bool is_limited = pause.tv_sec != 0 || pause.tv_nsec != 0;
    if (!is_interrupted && !is_asked)  // its own check may have found what asks it
      is_interrupted = futex_wait(word, before, is_limited ? &pause : nullptr) < 0 && errno == EINTR;
    if (own.grants.load() != grants && !lets_pass) return own.woken;
    const bool has_come = word.load() != before;
    guard.lock();
    if (lets_pass) table_->passed_ns += host_now_ns() - paused_ns;
    own.is_stopped = false;
    if (own.acts == ThreadActs::acting) break;
    if (const int signal = std::exchange(own.asked_signal, 0); signal != 0) {
      own.acts = ThreadActs::blocked;
      if (end_by_signal(own.ends) && guard.lets_in(signal)) {
        own.ends = WaitEnds::by_thread;
        own.ended_by = signal;
        unblock(own, own.asked_from, Woken::interrupted);
      } else if (own.readiness != nullptr && own.readiness->is_there()) {  // a signalfd has it
        own.ends = WaitEnds::by_thread;
        unblock(own, own.asked_from, Woken::signalled);
      }
      note_settled();
      dispatch();
    } else if (is_interrupted && end_by_signal(own.ends)) {
      own.ends = WaitEnds::by_thread;
      own.ended_by = own.signal_to_come;
      unblock(own, own.ended_by != 0 ? own.asked_from : ActionKey{.clock_ps = now_ps()}, Woken::interrupted);
      dispatch();
    } else if (own.acts == ThreadActs::blocked && own.readiness != nullptr &&
               (!checks || has_checked_long()) && !is_being_changed(own) && own.readiness->is_there()) {
      table_->has_overtaken = true;
      own.ends = WaitEnds::by_thread;
      unblock(own, {.clock_ps = now_ps()}, Woken::signalled);
      dispatch();
    } else if (has_come) {
      pause_ns = has_processes() ? first_process_pause_ns : first_pause_ns;
    } else {
      if (has_processes()) check_ended(own);
      if (is_left_to_host()) {
        grant(own, Woken::no);
        break;
      }
      if ((is_next || is_last) && table_->has_started) check_thread(awaited(), pause_ns);
      if (is_file_next || awaits_call) check_thread(acting(), pause_ns);
      if (has_processes()) check_endless(own, progress);
      if (checks) pause_ns = std::min(2 * pause_ns, longest_ns);
    }
  }
  return own.woken;
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
  leave(own, clock_ps);
}

// Whether the thread begins an action: it may be in one.
bool ThreadOrder::begins(OrderedThread& own, const Guard& guard) {
  own.is_stopped = false;
  if (guard.is_nested()) {
    ++own.depth;
    return false;
  }
  // A handler calls, in a wait: it acts no earlier than the process that has sent its signal, or has ended.
  // The host may tell of either before the order does.
  if (own.acts == ThreadActs::blocked && own.mark != nullptr && has_processes()) {
    ActionKey from = own.signal_to_come != 0 ? own.asked_from : ActionKey{};
    note_ended_processes();
    for_each([&](const OrderedThread& thread) {
      if (thread.acts == ThreadActs::ending && is_child(thread, 0)) from = std::max(from, thread.key);
    });
    from.number = own.key.number;
    own.key = std::max(own.key, from);
  }
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
  wake_readers(own.key);
  note_settled();
  dispatch();
  return park(own, guard);
}

void ThreadOrder::leave(OrderedThread& own, std::int64_t clock_ps, bool is_of_program) {
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
  if (clock_ps == own.key.clock_ps && is_of_program && ++own.program_actions >= most_actions)
    clock_ps += actions_take_ps;
  const bool has_moved = clock_ps > own.key.clock_ps;
  if (has_moved) {
    own.key = {.clock_ps = clock_ps, .round = 0, .number = own.key.number};
    own.program_actions = 0;
  }
  if (std::exchange(own.gives_way, false)) {
    queue_behind_others(own);
  } else if (!has_moved) {
    ++own.key.round;
  }
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
