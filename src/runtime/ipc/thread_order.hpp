// ThreadOrder: the order in which the threads of a rank act.
//
// An action is what another thread may see: a call of a library of the machine, an operation on a lock, a
// condition, a semaphore, the begin or end of a thread or of a sleep. Between actions threads run freely.
// Actions happen in the order of their keys, whatever the host does: docs/internals/threads.md states why.
//
// The processes that a rank has started are of the same order: their threads stand in one OrderTable, in
// memory that they share. One ThreadOrder a process. The shim owns it; the provider reaches it by pointer, so
// it holds no thread-local data and calls nothing that is not AS-safe. Nothing here allocates memory.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/ipc/order_table.hpp"
#include "runtime/ipc/own_threads.hpp"

namespace apenet::ipc {

class ThreadOrder {
 public:
  static constexpr std::uint32_t most_threads = OrderTable::most_threads;

  constexpr ThreadOrder() = default;
  ThreadOrder(const ThreadOrder&) = delete;
  ThreadOrder& operator=(const ThreadOrder&) = delete;

  // Whether any thread was ever created: until then there is nothing to order.
  [[nodiscard]] bool in_use() const { return table_->used.load(std::memory_order_relaxed) != 0; }
  // The entry of the thread, or nullptr if it is not ordered.
  [[nodiscard]] OrderedThread* find(pthread_t thread);
  [[nodiscard]] OrderedThread* find_by_id(std::int32_t id);

  // The calling thread creates another one, with its time. Returns nullptr if the table is full.
  OrderedThread* create(OrderedThread* creator);
  // The calling thread takes an entry, at this time.
  OrderedThread* adopt(std::int64_t clock_ps);
  // Which thread it is.
  void note_identity(OrderedThread& created, pthread_t thread);
  // One that lives in a call waits there until virtual time begins: how far it came before would be the
  // host's choice.
  void begin(OrderedThread& own);
  // Wakes all that wait for its end.
  void end(OrderedThread& own);
  // Virtual time begins: from now on threads act in order.
  // words: where threads wait from now on, in the mapping, so that the simulator knows their waits; nullptr:
  // as before. A shared table lies there.
  using Words = OrderTable::Words;
  void start(std::int64_t clock_ps, Words* words = nullptr);
  [[nodiscard]] bool has_started() const { return table_->has_started; }
  // Whether what comes from the host may yet end a wait for another thread, after real time that nothing has
  // ended. Called with the lock of the order.
  using HostMayAct = bool (*)(std::int64_t passed_ns);
  void ask_for_host(HostMayAct host_may_act) { host_may_act_ = host_may_act; }
  // Whether the process has a handler for this signal. While it has none at all, no signal interrupts a wait.
  void note_handler(int signal, bool has_one) {
    if (signal < 1 || signal > 64) return;
    const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(signal - 1);
    if (has_one) {
      handled_signals_.fetch_or(bit, std::memory_order_relaxed);
    } else {
      handled_signals_.fetch_and(~bit, std::memory_order_relaxed);
    }
  }
  // From now on no two threads of this process run at once, in virtual time: one that wants to act also waits
  // until no other one runs. For programs whose threads communicate by memory alone.
  void run_alone();
  // In the child of a fork only the calling thread is left, and nothing is ordered.
  void reset();

  // Processes (thread_order_processes.cpp). From now on the entries stand in this table, which other
  // processes see. Does nothing if another process has begun an order there, or if this one is in use.
  void share(OrderTable& table);
  [[nodiscard]] bool is_shared() const { return table_ != &own_table_; }
  // Within an action: a process begins, with the caller's time. Returns nullptr if the table is full.
  OrderedThread* create_process(const OrderedThread& creator);
  // The number of that process. 0: it has not been started, or is in no order.
  void note_process(OrderedThread& created, std::uint32_t process);
  // In that process: the calling thread is its first one. After a fork, with its entry; else finds it.
  void become(OrderTable& table, OrderedThread& own);
  OrderedThread* join(OrderTable& table);
  // The process of this number, which another one has started and has not waited for; nullptr: is in no
  // order.
  [[nodiscard]] OrderedThread* find_process(std::uint32_t process);
  // Whether it has an entry, and has not ended.
  [[nodiscard]] bool knows_process(std::uint32_t process);
  // Whether it acts in order: it stands in no wait of the host.
  [[nodiscard]] bool acts_in_order(std::uint32_t process);
  // Within an action: the child that has ended first of those of this process, or this one; nullptr: none
  // has. process: 0: any.
  [[nodiscard]] OrderedThread* find_ended(std::uint32_t process);
  // Within an action: waits for the end of a child of this process. Returns Woken::no if it will come in the
  // host, because no such child acts in order.
  Woken await_end(OrderedThread& own, std::uint32_t process, std::int64_t deadline_ps);
  // Such a child has ended in the host, at least.
  [[nodiscard]] bool is_ending(std::uint32_t process);
  // Whether such a child is in the order at all, and whether one waits in the host.
  [[nodiscard]] bool has_child(std::uint32_t process);
  [[nodiscard]] bool has_child_outside(std::uint32_t process);
  [[nodiscard]] bool has_processes() const { return table_->processes.load(std::memory_order_relaxed) != 0; }
  [[nodiscard]] std::uint32_t process_changes() const { return table_->process_changes.load(); }
  // A process has been started that may be in no order.
  void note_start() { table_->process_changes.fetch_add(1); }
  // What processes of the order have in common: files, and what is known of memory.
  [[nodiscard]] OrderFiles& made_files() { return table_->made_files; }
  [[nodiscard]] std::atomic<std::uint64_t>& answer_for_memory(std::uint64_t file) {
    return table_->answers_for_memory[file / 2 % table_->answers_for_memory.size()];
  }
  // Between actions of the rank's only thread: if no process is left, there is nothing to order any more.
  bool retire(OrderedThread& own);
  // Call before a check for an ended child: signals of others may have ended one that waits.
  void check_killed();
  // The processes of the order, without the caller's.
  using Processes = std::array<std::uint32_t, most_threads>;
  [[nodiscard]] std::size_t list_processes(Processes& found);
  // The place of a process by that of its first thread, from 1.
  [[nodiscard]] std::uint32_t place_of_process(const OrderedThread& first) const { return place_of(&first); }
  // Its parent has waited for it, or it goes on outside the order.
  void forget_process(OrderedThread& process);
  // This process is about to end: the thread that acts next makes sure that it has.
  void tell_of_end();
  // Within an action: a signal has been sent to a process. Others wait until it has acted on it.
  void ask_process(std::uint32_t process, int signal, const OrderedThread& from);
  // Within an action that sends it: the host may end a wait of the process before the order tells of it. 0:
  // it has been sent.
  void announce_signal(std::uint32_t process, int signal, const OrderedThread& from);
  // Likewise: it has ended in the host by that signal.
  void note_killed(std::uint32_t process, const OrderedThread& from);
  // Likewise: it will be stopped, or go on, at once. Returns when its parent, if it waits, has the signal of
  // that kept until it can tell whether it ends the wait.
  void announce_stop(std::uint32_t process, const OrderedThread& from);
  // Likewise: it has been stopped, or will be at once.
  void note_stopped(std::uint32_t process);
  [[nodiscard]] bool has_stopped(std::uint32_t process);
  // Likewise: it is about to go on.
  void note_continued(std::uint32_t process, const OrderedThread& from);
  // At which threads are blocked that wait for files which only processes of this order make ready.
  [[nodiscard]] const void* files() const { return &table_->files; }
  // Within an action that is about to change such a file: threads that the host has blocked there may go on
  // at once, not before this action.
  void begin_file_change(const OrderedThread& own);
  // Likewise, after the change: those of this process that the host has not let go on still wait.
  void end_file_change(const OrderedThread& own);
  // Ends an action: the thread waits in the host, from now on, for a file that only threads of this process
  // make ready. Returns false if the action goes on, because it is part of another one.
  bool leave_to_file(OrderedThread& own);
  // That wait has ended.
  void come_from_file_wait(OrderedThread& own);
  // Within an action: its next call may wait in the host for such a file. Another thread acts then, until one
  // changes a file.
  void begin_file_wait(OrderedThread& own);
  // That call has returned. Whether the action has gone on all the time.
  bool end_file_wait(OrderedThread& own);

  // Begins an action: waits until the thread's key is the least of all that may act, and no other acts. An
  // action within an action, or of a signal's handler while the thread waits here, is part of that.
  void enter(OrderedThread& own);
  // Ends it. The thread's clock is then at least this. is_of_program: not of a library that waits in a loop
  // of its own. Very many of these at one time take time.
  void leave(OrderedThread& own, std::int64_t clock_ps, bool is_of_program = false);
  void leave(OrderedThread& own, bool is_of_program) { leave(own, own.key.clock_ps, is_of_program); }
  // Ends an action that counts for nothing: the thread's key stays.
  void leave_no_trace(OrderedThread& own);
  // Around a call of a library whose threads tell each other by memory (an MPI library's check whether
  // their requests are complete): all of it is one action, apart from its waits. An action between them is
  // part of it.
  void enter_call(OrderedThread& own);
  void leave_call(OrderedThread& own, std::int64_t clock_ps);
  // Between actions, or in such a call: begins an action at this time, if that is later, or now if the wait
  // ends early.
  Woken enter_at(OrderedThread& own, std::int64_t clock_ps, WaitEnds ends);
  // Between actions, or in such a call: the thread waits for something that is in no order, until its next
  // action. awaits_host: for something else than a thread of the process.
  void go_outside(OrderedThread& own, bool awaits_host = true);
  // Likewise, but only once it is blocked in the host: a signal that comes before would not end its wait.
  void expect_outside(OrderedThread& own, bool awaits_host);
  // After that: it acts no earlier than any other thread has acted, and goes on with its call.
  void come_inside(OrderedThread& own);
  // Likewise in two steps: others wait for it from the first one on, which returns whether it was outside. It
  // may run after the second.
  bool return_inside(OrderedThread& own);
  void begin_alone(OrderedThread& own);
  // Its clock is read. In a signal's handler that has interrupted a wait: it comes to the time of the signal.
  void come_to_time_of_handler(OrderedThread& own);
  // Between actions: the thread's clock moves.
  void advance(OrderedThread& own, std::int64_t clock_ps);
  // Within an action, or just before one: all others that may act at this time do so before the thread goes
  // on after it. If there are none, many times in a row, the thread waits for what another one does later,
  // and its clock moves there by steps.
  static void yield(OrderedThread& own) {
    own.gives_way = true;
    own.owes_way = false;
  }
  // Likewise, but a thread that has taken locks in its call does so before its first action without them, or
  // when it yields again: others would only wait for the locks.
  static void yield_without_locks(OrderedThread& own);
  // Within an action: the thread has taken a lock, or has given one free.
  static void note_lock(OrderedThread& own, bool has_taken);
  // Within an action: interrupts it until wake(object) or the deadline. owner: of the lock, if known.
  Woken block(OrderedThread& own, const void* object, std::int64_t deadline_ps, OrderedThread* owner,
              WaitEnds ends, HostReadiness* readiness = nullptr);
  // Within an action, or by a thread that is not ordered (from: nullptr): wakes up to `most` threads that are
  // blocked at the object, the first to have come first. Their clocks are then at least the caller's. Returns
  // how many.
  std::uint32_t wake(const void* object, std::uint32_t most, const OrderedThread* from);
  // Likewise: a signal with a handler has been sent to a thread. Others wait until it has run, or until the
  // thread has found that it blocks the signal.
  void ask(pthread_t thread, int signal, const OrderedThread& from);
  // As announce_signal(), for a thread of this process.
  void announce(pthread_t thread, int signal, const OrderedThread& from);
  // Within an action: those that wait for files look again. May be of another process: it may have inherited
  // the set of files that has changed.
  enum class Readers : std::uint8_t { of_process, all };
  void tell_readers(const OrderedThread& from, Readers readers);
  // Who has been woken at the object and has not acted since; nullptr: nobody. It takes a lock first:
  // otherwise those that take it again and again could keep it from one that waits.
  [[nodiscard]] OrderedThread* first_to_take(const void* object);
  // The thread has got the lock for which others wait.
  void note_owner(const void* object, OrderedThread& own);
  // Likewise: ends the wait of a thread that may be cancelled, as a signal would.
  void cancel(pthread_t thread, const OrderedThread* from);

  // The earliest time at which another thread acts; INT64_MAX: none does before it is woken. Those whose
  // last poll was empty, too, and later than the thread's poll before the last one do not count.
  [[nodiscard]] std::int64_t next_other_ps(const OrderedThread& own);
  // When the thread that has slept longest fell asleep; INT64_MAX: none sleeps.
  [[nodiscard]] std::int64_t oldest_sleep_ps();
  // Within an action: waits until it is known when each other thread acts next. The answers of the next three
  // do not depend on the host then.
  void settle_others(OrderedThread& own);
  // Whether a thread waits for a lock of this one, or for its end, and may find what the checks have not, or
  // has told it something by memory.
  [[nodiscard]] bool must_yield(const OrderedThread& own);
  // Something has come, or was posted: a poll that was empty may find it.
  [[nodiscard]] std::uint64_t progress() const { return table_->progress.load(std::memory_order_relaxed); }
  void note_progress() { table_->progress.fetch_add(1, std::memory_order_relaxed); }
  // Threads wait in a library also for files and signals: what other threads do may end such a wait.
  void note_mixed_waits() { table_->has_mixed_waits = true; }
  // Within an action: the thread waits in a library, has found nothing, and checks again unless it waits in
  // the simulation. timer_ps: when a timer of its process is due.
  void note_empty_poll(OrderedThread& own, std::int64_t timer_ps = OrderedThread::no_deadline_ps);
  // It begins another call: what it has seen before may have changed in memory.
  static void forget_polls(OrderedThread& own) { own.saw_nothing = 0; }

  // How many threads of this process are in enter_call().
  [[nodiscard]] std::uint32_t count_in_calls();
  // How many are blocked at the object.
  [[nodiscard]] std::uint32_t count_blocked(const void* object);

  // The time of the last action.
  [[nodiscard]] std::int64_t now_ps() const { return table_->now_ps.load(std::memory_order_relaxed); }
  // A thread acted for which the others had not waited: the host decided when.
  [[nodiscard]] bool has_overtaken() const { return table_->has_overtaken; }

 private:
  class Guard;
  class HostPace;

  template <typename Use>
  void for_each(Use use) {
    for (std::uint32_t i = 0; i < table_->used.load(std::memory_order_relaxed); ++i) {
      if (table_->threads[i].acts != ThreadActs::free) use(table_->threads[i]);
    }
  }
  [[nodiscard]] OrderedThread* add(std::int64_t clock_ps);
  [[nodiscard]] static ActionKey acts_at(const OrderedThread& thread);
  [[nodiscard]] static bool may_act(const OrderedThread& thread);
  [[nodiscard]] OrderedThread* least();
  // Who runs while this thread, which would act next, must not act; nullptr: nobody.
  [[nodiscard]] OrderedThread* runs_beside(const OrderedThread& next);
  [[nodiscard]] OrderedThread* awaited();
  [[nodiscard]] OrderedThread* first_to_wait();
  [[nodiscard]] OrderedThread* first_to_come();
  void dispatch();
  void grant(OrderedThread& thread, Woken woken);
  [[nodiscard]] bool may_any_act();
  void wake_paced();
  Woken park(OrderedThread& own, Guard& guard);
  // thread_order_checks.cpp. pause_ns: since the last check.
  void check_thread(OrderedThread* thread, std::int64_t pause_ns);
  struct SeenProgress {  // when a wait was checked first
    std::int64_t now_ps = 0;
    std::int64_t cpu_ns = -1;  // that the other processes have used
  };
  void check_endless(OrderedThread& own, SeenProgress& seen);
  [[nodiscard]] bool is_left(OrderedThread& thread, const SeenThread& seen, std::int64_t pause_ns);
  void note_thread_ended(OrderedThread& thread);
  [[nodiscard]] bool awaits_file_of_other(const OrderedThread& own);
  [[nodiscard]] OrderedThread* first_running(const OrderedThread* besides);
  void note_settled();
  [[nodiscard]] bool begins(OrderedThread& own, const Guard& guard);
  void come_to_signal(OrderedThread& own);
  [[nodiscard]] bool is_one_before(const OrderedThread& own);
  void step_to_others(OrderedThread& own);
  void queue_behind_others(OrderedThread& own);
  void settle_before_step(OrderedThread& own);
  void give_way(OrderedThread& own);
  void end_action(OrderedThread& own, std::int64_t clock_ps, bool is_of_program);
  void come_back(OrderedThread& own);
  void come_from_file(OrderedThread& own);
  static void release_at_file(OrderedThread& thread, ActionKey from);
  void note_ended_processes();
  void unblock(OrderedThread& thread, ActionKey from, Woken woken);
  std::uint32_t wake_blocked(OrderObject object, std::uint32_t most, const ActionKey& from);
  void wake_late();
  void drop(OrderedThread& thread);
  [[nodiscard]] bool awaits_host(const OrderedThread& next);
  [[nodiscard]] std::int64_t earliest_other_ps(const OrderedThread& own,
                                               bool in_call);  // in_call: of those in one
  [[nodiscard]] bool has_polled_since(const OrderedThread& other, const OrderedThread& own) const;
  [[nodiscard]] std::atomic<std::uint32_t>& word_of(const OrderedThread& thread) {
    return (*words_)[index_of(thread)].changes;
  }
  void note_wait(const OrderedThread& own);
  void tell_mixed_waits() {
    if (table_->has_mixed_waits) note_progress();
  }
  [[nodiscard]] bool is_being_changed(const OrderedThread& own);
  [[nodiscard]] bool is_hopeless(const OrderedThread& own);
  [[nodiscard]] bool may_end_with_process(const OrderedThread& own) const;
  [[nodiscard]] bool waits_on(const OrderedThread& thread);
  [[nodiscard]] bool asks_for_ends(const OrderedThread& own);
  [[nodiscard]] std::size_t index_of(const OrderedThread& thread) const {
    return static_cast<std::size_t>(&thread - table_->threads.data());
  }
  // Places count from 1.
  [[nodiscard]] std::uint32_t place_of(const OrderedThread* thread) const {
    return thread == nullptr ? 0 : static_cast<std::uint32_t>(index_of(*thread)) + 1;
  }
  [[nodiscard]] OrderedThread* at_place(std::uint32_t place) {
    return place == 0 ? nullptr : &table_->threads[place - 1];
  }
  [[nodiscard]] OrderedThread* acting() { return at_place(table_->acting); }
  [[nodiscard]] bool is_acting(const OrderedThread& thread) const {
    return table_->acting == place_of(&thread);
  }
  [[nodiscard]] OrderObject name_of(const void* object) const;
  void wake_one(OrderedThread& thread);
  [[nodiscard]] std::uint32_t own_process();
  void ask_one(OrderedThread& thread, int signal, const ActionKey& from);
  static void announce_one(OrderedThread& thread, int signal, const ActionKey& from);
  void note_outside(OrderedThread& thread);
  void note_left(OrderedThread& thread, bool is_blocked);
  [[nodiscard]] static bool is_between_actions_of_call(const OrderedThread& thread);
  // thread_order_processes.cpp.
  void note_process_ended(std::uint32_t process, const ActionKey* killed_at = nullptr);
  void end_process(OrderedThread& first);
  void wake_parents(std::uint32_t parent);
  // The process has been stopped, or goes on.
  void tell_parent(std::uint32_t process, const ActionKey& at);
  [[nodiscard]] OrderedThread* first_of(std::uint32_t process);
  void hear_of_stop(OrderedThread& own, Guard& guard);
  // The thread of the process that gets its SIGCHLD; nullptr: none.
  [[nodiscard]] OrderedThread* receiver_of_end(std::uint32_t process);
  [[nodiscard]] static bool hears_signals(const OrderedThread& thread);
  void wake_readers(const ActionKey& from);
  void change_files(const ActionKey& from);
  void check_ended(const OrderedThread& own);
  void repair();
  [[nodiscard]] bool is_child(const OrderedThread& thread, std::uint32_t process);
  [[nodiscard]] bool has_ended(const OrderedThread& first);

  // The process's own.
  std::atomic<std::uint32_t> process_{0};
  bool runs_alone_ = false;
  std::atomic<std::uint64_t> handled_signals_{0};
  std::atomic<pthread_t> holder_{};
  HostMayAct host_may_act_ = nullptr;
  struct LateWake {
    OrderObject object;
    std::uint32_t most = 0;
  };
  std::array<LateWake, 16> late_{};  // by handlers of signals
  std::uint32_t late_count_ = 0;
  // Who has been let act: woken once the lock is free.
  std::atomic<std::uint32_t>* granted_ = nullptr;
  std::array<std::atomic<pthread_t>, most_threads> selves_{};
  OrderTable own_table_{};
  OrderTable* table_ = &own_table_;
  Words* words_ = &own_table_.words;
};

}  // namespace apenet::ipc
