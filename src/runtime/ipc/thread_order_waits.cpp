// Who waits for what in the order, and what the host tells of threads that do not act.
#include <algorithm>
#include <utility>

#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/thread_order_parts.hpp"

namespace apenet::ipc {
namespace {

// A library that polls memory lets others go first meanwhile.
constexpr std::uint32_t idle_yields_of_step = 64;

}  // namespace

// It runs in a library, which may spin there until another thread changes memory.
bool ThreadOrder::is_between_actions_of_call(const OrderedThread& thread) {
  return thread.acts == ThreadActs::acting && thread.call_depth > 0 && thread.depth == 0;
}

OrderedThread* ThreadOrder::first_running(const OrderedThread* besides) {
  OrderedThread* first = nullptr;
  for_each([&](OrderedThread& thread) {
    const bool runs = thread.acts == ThreadActs::running && !thread.is_stopped && &thread != besides;
    if (runs && (first == nullptr || thread.key < first->key)) first = &thread;
  });
  return first;
}

// Call when a thread runs no more.
void ThreadOrder::note_settled() {
  if (!table_->is_settling || table_->acting == 0 || first_running(acting()) != nullptr) return;
  wake_one(*acting());
}

void ThreadOrder::settle_others(OrderedThread& own) {
  Guard guard(*this);
  std::int64_t pause_ns = first_pause_ns;
  table_->is_settling = true;
  while (OrderedThread* first = first_running(&own)) {
    std::atomic<std::uint32_t>& word = word_of(own);
    const std::uint32_t before = word.load();
    const timespec pause = pause_of(pause_ns);
    guard.unlock();
    const bool has_changed = futex_wait(word, before, &pause) == 0;
    guard.lock();
    if (has_changed) continue;
    check_thread(first, pause_ns);
    pause_ns = std::min(2 * pause_ns, most_pause_ns);
  }
  table_->is_settling = false;
}

std::int64_t ThreadOrder::oldest_sleep_ps() {
  Guard guard(*this);
  std::int64_t oldest_ps = INT64_MAX;
  for_each([&](const OrderedThread& thread) {
    if (thread.acts == ThreadActs::blocked && may_act(thread))
      oldest_ps = std::min(oldest_ps, thread.key.clock_ps);
  });
  return oldest_ps;
}

std::uint32_t ThreadOrder::count_in_calls() {
  Guard guard(*this);
  std::uint32_t count = 0;
  for_each([&](const OrderedThread& thread) {
    count += thread.call_depth > 0 && thread.process == own_process() ? 1 : 0;
  });
  return count;
}

std::uint32_t ThreadOrder::count_blocked(const void* object) {
  Guard guard(*this);
  std::uint32_t count = 0;
  for_each([&](const OrderedThread& thread) {
    count += thread.acts == ThreadActs::blocked && thread.object == name_of(object) ? 1 : 0;
  });
  return count;
}

// The thread was left out, and acts in order again.
void ThreadOrder::come_back(OrderedThread& own) {
  own.key = std::max(own.key, ActionKey{.clock_ps = now_ps(), .round = 0, .number = own.key.number});
  own.acts = ThreadActs::running;
  if (!own.is_known_outside) table_->has_overtaken = true;
  own.is_known_outside = false;
  own.has_come_back = true;
  // Those that have waited for nobody else may have to find that its process ends.
  for_each([&](OrderedThread& thread) {
    if (has_processes() && thread.acts == ThreadActs::blocked) wake_one(thread);
  });
}

// The host has let it go on, though no thread has changed a file: a process has ended, or a signal has come.
void ThreadOrder::come_from_file(OrderedThread& own) {
  note_ended_processes();
  bool has_ended = false;
  for_each([&](const OrderedThread& thread) {
    if (thread.acts != ThreadActs::ending) return;
    has_ended = true;
    own.key = std::max(
        own.key, {.clock_ps = thread.key.clock_ps, .round = thread.key.round + 1, .number = own.key.number});
  });
  if (!has_ended) {
    own.key = std::max(own.key, {.clock_ps = now_ps(), .round = 0, .number = own.key.number});
    table_->has_overtaken = true;
  }
  own.acts = ThreadActs::running;
}

void ThreadOrder::begin_file_change(const OrderedThread& own) {
  Guard guard(*this);
  tell_mixed_waits();
  for_each([&](OrderedThread& thread) {
    if (thread.acts == ThreadActs::at_file) release_at_file(thread, own.key);
  });
}

void ThreadOrder::release_at_file(OrderedThread& thread, ActionKey from) {
  from.number = thread.key.number;
  thread.key = std::max(thread.key, from);
  thread.settled_key = thread.key;
  thread.acts = ThreadActs::running;
  thread.checks = 0;
  thread.cpu_ns = -1;
}

// A write wakes those that wait for it at once, so who is blocked after it does not wait for it.
void ThreadOrder::end_file_change(const OrderedThread& own) {
  Guard guard(*this);
  for_each([&](OrderedThread& thread) {
    const bool was_released = thread.acts == ThreadActs::running && thread.may_wait_at_file;
    if (!was_released || thread.process != own.process) return;
    const SeenThread seen = see_thread(static_cast<std::int32_t>(thread.process), thread.id);
    if (seen.state == ThreadState::blocked) thread.acts = ThreadActs::at_file;
  });
  note_settled();
}

bool ThreadOrder::leave_to_file(OrderedThread& own) {
  Guard guard(*this);
  if (!is_acting(own) || own.depth > 0 || own.call_depth > 0) return false;
  end_action(own, own.key.clock_ps, true);
  own.acts = ThreadActs::at_file;
  own.may_wait_at_file = true;
  note_settled();
  dispatch();
  return true;
}

void ThreadOrder::come_from_file_wait(OrderedThread& own) {
  Guard guard(*this);
  own.may_wait_at_file = false;
  if (own.acts == ThreadActs::at_file) come_from_file(own);
}

void ThreadOrder::begin_file_wait(OrderedThread& own) {
  Guard guard(*this);
  if (!is_acting(own) || own.depth > 0 || own.call_depth > 0) return;
  own.may_wait_at_file = true;
  own.checks = 0;
  own.cpu_ns = -1;
  if (OrderedThread* const next = first_to_wait(); next != nullptr) wake_one(*next);  // which checks it
}

bool ThreadOrder::end_file_wait(OrderedThread& own) {
  Guard guard(*this);
  own.may_wait_at_file = false;
  return is_acting(own);
}

void ThreadOrder::go_outside(OrderedThread& own, bool awaits_host) {
  Guard guard(*this);
  const bool is_in_call = is_between_actions_of_call(own);
  if (own.acts != ThreadActs::running && !is_in_call) return;
  if (is_in_call) table_->acting = 0;
  own.acts = ThreadActs::outside;
  own.is_known_outside = true;
  own.awaits_host = awaits_host;
  note_settled();
  dispatch();
}

void ThreadOrder::expect_outside(OrderedThread& own, bool awaits_host) {
  Guard guard(*this);
  if (own.acts != ThreadActs::running) return;
  own.is_known_outside = true;
  own.awaits_host = awaits_host;
}

void ThreadOrder::come_inside(OrderedThread& own) {
  if (own.call_depth > 0) {
    if (own.acts != ThreadActs::outside) return;
    enter(own);
    const Guard guard(*this);
    own.depth = 0;
    return;
  }
  if (return_inside(own)) begin_alone(own);
}

bool ThreadOrder::return_inside(OrderedThread& own) {
  Guard guard(*this);
  if (guard.is_nested()) return false;
  const bool was_outside = own.acts == ThreadActs::outside;
  if (was_outside) come_back(own);
  if (own.acts == ThreadActs::running) own.is_known_outside = false;
  return was_outside;
}

// The action goes on when the thread has been woken, and its key is the least.
Woken ThreadOrder::block(OrderedThread& own, const void* object, std::int64_t deadline_ps,
                         OrderedThread* owner, WaitEnds ends, HostReadiness* readiness) {
  Guard guard(*this, Guard::Signals::wait);
  if (guard.is_nested()) return Woken::interrupted;
  own.ended_by = std::exchange(own.signal_at_check, 0);
  const bool is_sent = !std::exchange(own.is_asked_for_stop, false) || guard.gets_stop_signals();
  if (own.ended_by != 0 && is_sent && end_by_signal(ends) && guard.lets_in(own.ended_by))
    return Woken::interrupted;
  own.ended_by = 0;
  own.settled_key = own.key;
  own.acts = ThreadActs::blocked;
  own.object = name_of(object);
  own.ticket = ++table_->tickets;
  own.deadline_ps = deadline_ps;
  own.owner = place_of(owner);
  own.readiness = readiness;
  own.awaited_file = readiness == nullptr ? no_file : readiness->only_file();
  own.woken = Woken::no;
  own.ends = ends;
  if (is_acting(own)) table_->acting = 0;
  dispatch();
  return park(own, guard);
}

// A thread that is blocked goes on, not before this key.
void ThreadOrder::unblock(OrderedThread& thread, ActionKey from, Woken woken) {
  from.number = thread.key.number;
  thread.key = std::max(thread.key, from);
  thread.settled_key = thread.key;
  thread.acts = ThreadActs::at_gate;
  thread.taking = woken == Woken::signalled ? thread.object : OrderObject{};
  if (woken == Woken::signalled) table_->passed_ns = 0;
  thread.object = {};
  thread.owner = 0;
  thread.awaits_process = false;
  thread.readiness = nullptr;
  thread.deadline_ps = OrderedThread::no_deadline_ps;
  thread.woken = woken;
}

std::uint32_t ThreadOrder::wake(const void* object, std::uint32_t most, const OrderedThread* from) {
  Guard guard(*this);
  if (object == files()) tell_mixed_waits();
  if (guard.is_nested()) {  // the holder does it when it releases the lock
    if (late_count_ < late_.size()) late_[late_count_++] = {.object = name_of(object), .most = most};
    return 0;
  }
  const std::uint32_t woken =
      wake_blocked(name_of(object), most, from == nullptr ? ActionKey{.clock_ps = now_ps()} : from->key);
  dispatch();
  return woken;
}

// Whether the thread, one of this process, would find that the only file for which it waits is not ready.
bool ThreadOrder::waits_on(const OrderedThread& thread) {
  if (thread.awaited_file.fd < 0 || thread.process != own_process()) return false;
  pollfd file = thread.awaited_file;
  return poll_now(&file, 1) == 0;
}

std::uint32_t ThreadOrder::wake_blocked(OrderObject object, std::uint32_t most, const ActionKey& from) {
  std::uint32_t woken = 0;
  const bool is_at_files = object == name_of(files());
  while (woken < most) {
    OrderedThread* first = nullptr;
    for_each([&](OrderedThread& thread) {
      const bool is_there = thread.acts == ThreadActs::blocked && thread.object == object;
      if (is_there && is_at_files && waits_on(thread)) return;
      if (is_there && (first == nullptr || thread.ticket < first->ticket)) first = &thread;
    });
    if (first == nullptr) break;
    unblock(*first, from, Woken::signalled);
    ++woken;
  }
  return woken;
}

void ThreadOrder::tell_readers(const OrderedThread& from, Readers readers) {
  Guard guard(*this);
  if (guard.is_nested()) return;
  tell_mixed_waits();
  for_each([&](OrderedThread& thread) {
    const bool reads = thread.acts == ThreadActs::blocked && thread.object == name_of(files());
    if (reads && (readers == Readers::all || thread.process == from.process))
      unblock(thread, from.key, Woken::signalled);
  });
  dispatch();
}

void ThreadOrder::wake_late() {
  const std::uint32_t count = std::exchange(late_count_, 0);
  for (std::uint32_t i = 0; i < count; ++i)
    wake_blocked(late_[i].object, late_[i].most, ActionKey{.clock_ps = now_ps()});
  dispatch();
}

OrderedThread* ThreadOrder::first_to_take(const void* object) {
  Guard guard(*this);
  OrderedThread* first = nullptr;
  for_each([&](OrderedThread& thread) {
    if (thread.acts == ThreadActs::at_gate && thread.taking == name_of(object)) first = &thread;
  });
  return first;
}

void ThreadOrder::note_owner(const void* object, OrderedThread& own) {
  Guard guard(*this);
  for_each([&](OrderedThread& thread) {
    if (thread.acts == ThreadActs::blocked && thread.object == name_of(object)) thread.owner = place_of(&own);
  });
}

void ThreadOrder::cancel(pthread_t thread, const OrderedThread* from) {
  Guard guard(*this);
  OrderedThread* const found = find(thread);
  if (found == nullptr || found->acts != ThreadActs::blocked || found->ends == WaitEnds::by_thread) return;
  unblock(*found, from == nullptr ? ActionKey{.clock_ps = now_ps()} : from->key, Woken::interrupted);
  dispatch();
}

void ThreadOrder::ask(pthread_t thread, int signal, const OrderedThread& from) {
  Guard guard(*this);
  tell_mixed_waits();
  OrderedThread* const found = find(thread);
  if (found == nullptr || found->acts != ThreadActs::blocked || !end_by_signal(found->ends)) return;
  ask_one(*found, signal, from.key);
}

void ThreadOrder::announce(pthread_t thread, int signal, const OrderedThread& from) {
  Guard guard(*this);
  if (OrderedThread* const found = find(thread); found != nullptr) announce_one(*found, signal, from.key);
}

void ThreadOrder::announce_one(OrderedThread& thread, int signal, const ActionKey& from) {
  if (thread.asked_signal != 0 && signal != 0) return;
  thread.signal_to_come = signal;
  if (signal != 0) thread.asked_from = from;
}

void ThreadOrder::ask_one(OrderedThread& thread, int signal, const ActionKey& from) {
  thread.asked_signal = signal;
  thread.asked_from = from;
  thread.is_asked_for_stop = false;
  thread.acts = ThreadActs::running;
  wake_one(thread);
}

std::int64_t ThreadOrder::earliest_other_ps(const OrderedThread& own, bool in_call) {
  std::int64_t first_ps = INT64_MAX;
  for_each([&](const OrderedThread& other) {
    const bool counts = &other != &own && may_act(other) && (!in_call || other.call_depth > 0);
    if (counts) first_ps = std::min(first_ps, acts_at(other).clock_ps);
  });
  return first_ps;
}

void ThreadOrder::note_empty_poll(OrderedThread& own, std::int64_t timer_ps) {
  Guard guard(*this);
  own.timer_ps = timer_ps;
  const std::uint64_t now = progress();
  own.polled_before = own.saw_nothing == now ? own.polled : OrderedThread::no_poll;
  own.saw_nothing = now;
  own.polled = ++table_->tickets;
}

// Whether it helps nobody to let the other thread act: all that has happened since the last poll of `own` is
// an empty poll of the other one, or it was blocked then and still is.
bool ThreadOrder::has_polled_since(const OrderedThread& other, const OrderedThread& own) const {
  const std::uint64_t now = progress();
  if (own.saw_nothing != now || own.polled_before == OrderedThread::no_poll) return false;
  const bool is_blocked = !may_act(other);
  if (is_blocked && other.ticket < own.polled_before) return true;
  return other.saw_nothing == now && other.polled > own.polled_before &&
         (is_blocked || acts_at(other) == other.key);
}

std::int64_t ThreadOrder::next_other_ps(const OrderedThread& own) {
  Guard guard(*this);
  std::int64_t first_ps = INT64_MAX;
  for_each([&](const OrderedThread& other) {
    if (&other == &own || !may_act(other)) return;
    if (!has_polled_since(other, own)) {
      first_ps = std::min(first_ps, acts_at(other).clock_ps);
    } else if (other.process != own.process) {  // only that one fires its timers
      first_ps = std::min(first_ps, other.timer_ps);
    }
  });
  return first_ps;
}

bool ThreadOrder::must_yield(const OrderedThread& own) {
  Guard guard(*this);
  bool yields = false;
  for_each([&](const OrderedThread& other) {
    if (other.acts == ThreadActs::blocked && other.owner == place_of(&own) && !has_polled_since(other, own))
      yields = true;
  });
  return yields;
}

// Whether another thread may act at this time that does something else than to yield, or to poll without
// effect.
bool ThreadOrder::is_one_before(const OrderedThread& own) {
  bool is = false;
  for_each([&](const OrderedThread& other) {
    const bool is_before = &other != &own && may_act(other) && acts_at(other).clock_ps <= own.key.clock_ps;
    const bool yields_too = other.call_depth > 0 && other.yielded_at == progress();
    is = is || (is_before && other.saw_nothing != progress() && !yields_too);
  });
  return is;
}

// It has yielded many times in a row while nothing was posted or taken. All others have settled.
void ThreadOrder::step_to_others(OrderedThread& own) {
  if (is_one_before(own)) {
    own.idle_yields = 0;
    return;
  }
  own.saw_nothing = progress();
  own.polled = ++table_->tickets;
  // In a call of a library it waits for what another thread does in one; what comes later, the simulation
  // knows.
  const std::int64_t next_ps = earliest_other_ps(own, own.call_depth > 0);
  const bool steps = own.idle_yields % idle_yields_of_step == 0 && next_ps != INT64_MAX;
  if (!steps || next_ps <= own.key.clock_ps) return;
  own.key.clock_ps += next_step_ps(own.idle_since_ps, own.key.clock_ps, next_ps);
  own.key.round = 0;
}

// What another thread does next may come later than its key, but nobody knows before it is there.
void ThreadOrder::queue_behind_others(OrderedThread& own) {
  if (std::exchange(own.yielded_at, progress()) != progress()) own.idle_yields = 0;
  if (own.idle_yields == 0) own.idle_since_ps = own.key.clock_ps;
  if (++own.idle_yields > idle_yields_of_step) step_to_others(own);
  for_each([&](const OrderedThread& other) {
    if (&other != &own && may_act(other) && other.settled_key.clock_ps == own.key.clock_ps)
      own.key.round = std::max(own.key.round, other.settled_key.round);
  });
  ++own.key.round;
}

// Call before queue_behind_others(), without the lock: its next yield may move the clock to the time at which
// another thread acts.
void ThreadOrder::settle_before_step(OrderedThread& own) {
  const bool is_nested = holder_.load(std::memory_order_relaxed) == pthread_self();
  if (own.idle_yields >= idle_yields_of_step && !is_nested) settle_others(own);
}

void ThreadOrder::yield_without_locks(OrderedThread& own) {
  if (own.call_depth == 0 || own.locks == 0 || own.owes_way) return yield(own);
  own.owes_way = true;
}

void ThreadOrder::note_lock(OrderedThread& own, bool has_taken) {
  if (own.call_depth == 0) return;
  if (has_taken) {
    ++own.locks;
  } else if (own.locks > 0) {
    --own.locks;
  }
}

// Within a call.
void ThreadOrder::give_way(OrderedThread& own) {
  settle_before_step(own);
  {
    Guard guard(*this);
    if (guard.is_nested() || !is_acting(own)) return;
    queue_behind_others(own);
    own.settled_key = own.key;
    const bool is_first = table_->has_started && least() == &own && runs_beside(own) == nullptr;
    if (is_first && own.key.clock_ps <= now_ps()) return;
  }
  Guard guard(*this, Guard::Signals::wait);
  own.acts = ThreadActs::at_gate;
  own.ticket = ++table_->tickets;
  own.woken = Woken::no;
  own.ends = WaitEnds::by_thread;
  table_->acting = 0;
  dispatch();
  park(own, guard);
}

}  // namespace apenet::ipc
