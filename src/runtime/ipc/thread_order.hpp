// ThreadOrder: the order in which the threads of a rank act.
//
// An action is what another thread may see: a call of a library of the machine, an operation on a lock, a
// condition, a semaphore, the begin or end of a thread or of a sleep. Between actions threads run freely.
// Actions happen in the order of their keys, whatever the host does: docs/internals/threads.md states why.
//
// One object a process. The shim owns it; the provider reaches it by pointer, so it holds no thread-local
// data and calls nothing that is not AS-safe. Nothing here allocates memory.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>

#include "runtime/ipc/progress.hpp"

namespace apenet::ipc {

// When a thread acts, or may act next. Actions at one time alternate: each thread's first, then each
// thread's second.
struct ActionKey {
  std::int64_t clock_ps = 0;
  std::uint32_t round = 0;   // actions since the thread's clock last moved
  std::uint32_t number = 0;  // number of the thread, in the order of creation
  friend auto operator<=>(const ActionKey&, const ActionKey&) = default;
};

enum class ThreadActs : std::uint8_t {
  free,     // no thread has this entry
  running,  // between two actions: acts no earlier than its key
  at_gate,  // wants to act, and waits until its key is the least
  acting,   // one thread at most
  blocked,  // until another thread wakes it, or its deadline comes
  outside,  // is blocked by what the order does not see, or runs without end
};

// What ends a wait early.
enum class WaitEnds : std::uint8_t { by_thread, by_cancel, by_signal };

enum class Woken : std::uint8_t { no, signalled, timed_out, interrupted };

// Where a thread of the order waits, in the mapping: the simulator reads it when a deadlock is reported.
struct ThreadWord {
  enum class Awaits : std::uint32_t { nothing, order, time, object };
  static constexpr std::uint32_t marks_one = 0x6f726472;

  std::atomic<std::uint32_t> changes{0};  // futex: changes when the thread may go on
  std::uint32_t mark = 0;                 // marks_one, once a thread has waited
  std::atomic<Awaits> awaits{Awaits::nothing};
  std::atomic<std::int32_t> thread_id{
      0};  // host id of the thread that acts first, has the lock, or is joined; 0: unknown
};

// For what a blocked thread waits in the host, where a thread that is in no order may make it ready.
class HostReadiness {
 public:
  [[nodiscard]] virtual bool is_there() = 0;

 protected:
  ~HostReadiness() = default;
};

// What a wait writes on the stack, and a jump out of it leaves behind.
using ParkMark = std::array<std::uint64_t, 32>;

struct OrderedThread {
  static constexpr std::int64_t no_deadline_ps = INT64_MAX;

  ActionKey key;
  ThreadActs acts = ThreadActs::free;
  Woken woken = Woken::no;
  WaitEnds ends = WaitEnds::by_thread;
  bool is_known_outside = false;  // it said so
  bool awaits_host = false;       // ThreadActs::outside: for something else than a thread
  int asked_signal = 0;           // ThreadActs::running: it is about to find whether this one ends its wait
  ActionKey asked_from{};
  const ParkMark* mark = nullptr;     // on its stack, while it waits
  std::uint32_t program_actions = 0;  // the program's own actions since the clock last moved
  std::uint32_t depth = 0;            // depth of actions within an action, or in a signal's handler
  std::uint32_t call_depth = 0;       // depth of enter_call()
  bool gives_way = false;             // others go first when it ends the action
  std::uint32_t idle_yields = 0;      // in a row, while nothing moved and nobody else could act at its time
  std::int64_t idle_since_ps = 0;     // its clock at the first of them
  std::uint64_t yielded_at = 0;       // ThreadOrder::progress() at the last
  std::atomic<std::int32_t> id{0};    // the host's thread id; 0: has not begun
  CallProgress calls;                 // while it does not act
  std::uint64_t calls_progress = 0;   // ThreadOrder::progress() at that time
  // ThreadActs::blocked.
  const void* object = nullptr;
  std::uint64_t ticket = 0;  // in the order of coming
  std::int64_t deadline_ps = no_deadline_ps;
  OrderedThread* owner = nullptr;      // owner of the lock for which it waits, if known
  HostReadiness* readiness = nullptr;  // looked at now and then; nullptr: only threads of the order wake it
  const void* taking = nullptr;        // ThreadActs::at_gate: the object at which it has been woken
  // Its last empty poll, in a library that waits: ThreadOrder::progress_, its ticket, and that of the poll
  // before with the same progress, in the same call.
  static constexpr std::uint64_t no_poll = UINT64_MAX;
  std::uint64_t saw_nothing = 0;
  std::uint64_t polled = 0;
  std::uint64_t polled_before = no_poll;
  // When the host was last asked about it.
  ActionKey looked_at{};
  std::int64_t cpu_ns = -1;
  std::uint32_t looks = 0;  // in a row that found it blocked
};

class ThreadOrder {
 public:
  static constexpr std::uint32_t room = 1024;

  constexpr ThreadOrder() = default;
  ThreadOrder(const ThreadOrder&) = delete;
  ThreadOrder& operator=(const ThreadOrder&) = delete;

  // Whether any thread was ever created: until then there is nothing to order.
  [[nodiscard]] bool in_use() const { return used_.load(std::memory_order_relaxed) != 0; }
  // The entry of the thread, or nullptr if it is not ordered.
  [[nodiscard]] OrderedThread* find(pthread_t thread);
  [[nodiscard]] OrderedThread* find_by_id(std::int32_t id);

  // The calling thread creates another one, with its time. Returns nullptr if there is no room.
  OrderedThread* create(OrderedThread* creator);
  // The calling thread takes an entry, at this time.
  OrderedThread* adopt(std::int64_t clock_ps);
  // Which thread it is.
  void note_identity(OrderedThread& created, pthread_t thread);
  void begin(OrderedThread& own);
  // Wakes all that wait for its end.
  void end(OrderedThread& own);
  // Virtual time begins: from now on threads act in order.
  // words: where threads wait from now on, in the mapping, so that the simulator knows their waits; nullptr:
  // as before.
  using Words = std::array<ThreadWord, room>;
  void start(std::int64_t clock_ps, Words* words = nullptr);
  [[nodiscard]] bool has_started() const { return has_started_; }
  // Whether what comes from the host may yet end a wait for another thread, after real time that nothing has
  // ended. Called with the lock of the order.
  using HostMayAct = bool (*)(std::int64_t passed_ns);
  void ask_for_host(HostMayAct host_may_act) { host_may_act_ = host_may_act; }
  // In the child of a fork only the calling thread is left, and nothing is ordered.
  void reset();

  // Begins an action: waits until the thread's key is the least of all that may act, and no other acts. An
  // action within an action, or of a signal's handler while the thread waits here, is part of that.
  void enter(OrderedThread& own);
  // Ends it. The thread's clock is then at least this. is_of_program: not of a library that waits in a loop
  // of its own. Very many of these at one time take time.
  void leave(OrderedThread& own, std::int64_t clock_ps, bool is_of_program = false);
  void leave(OrderedThread& own, bool is_of_program) { leave(own, own.key.clock_ps, is_of_program); }
  // Around a call of a library whose threads tell each other by memory (an MPI library's look at whether
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
  // Between actions: the thread's clock moves.
  void advance(OrderedThread& own, std::int64_t clock_ps);
  // Within an action: all others that may act at this time do so before the thread goes on after it. If there
  // are none, many times in a row, the thread waits for what another one does later, and its clock moves
  // there by steps.
  static void yield(OrderedThread& own) { own.gives_way = true; }
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
  // Whether a thread waits for a lock of this one, and may find what the looks have not.
  [[nodiscard]] bool must_yield(const OrderedThread& own);
  // Something has come, or was posted: a poll that was empty may find it.
  [[nodiscard]] std::uint64_t progress() const { return progress_.load(std::memory_order_relaxed); }
  void note_progress() { progress_.fetch_add(1, std::memory_order_relaxed); }
  // Within an action: the thread waits in a library, has found nothing, and looks again unless it waits in
  // the simulation.
  void note_empty_poll(OrderedThread& own);
  // It begins another call: what it has seen before may have changed in memory.
  static void forget_polls(OrderedThread& own) { own.saw_nothing = 0; }

  // How many are blocked at the object.
  [[nodiscard]] std::uint32_t count_blocked(const void* object);

  // The time of the last action.
  [[nodiscard]] std::int64_t now_ps() const { return now_ps_.load(std::memory_order_relaxed); }
  // A thread acted for which the others had not waited: the host decided when.
  [[nodiscard]] bool has_overtaken() const { return has_overtaken_; }

 private:
  class Guard;
  class HostPace;

  template <typename Use>
  void for_each(Use use) {
    for (std::uint32_t i = 0; i < used_.load(std::memory_order_relaxed); ++i) {
      if (threads_[i].acts != ThreadActs::free) use(threads_[i]);
    }
  }
  [[nodiscard]] OrderedThread* add(std::int64_t clock_ps);
  [[nodiscard]] static ActionKey acts_at(const OrderedThread& thread);
  [[nodiscard]] static bool may_act(const OrderedThread& thread);
  [[nodiscard]] OrderedThread* least();
  [[nodiscard]] OrderedThread* first_to_wait();
  [[nodiscard]] OrderedThread* first_to_come();
  void dispatch();
  void grant(OrderedThread& thread, Woken woken);
  Woken park(OrderedThread& own, Guard& guard);
  void look_at(OrderedThread* thread);
  [[nodiscard]] OrderedThread* first_running(const OrderedThread* besides);
  void note_settled();
  [[nodiscard]] bool begins(OrderedThread& own, const Guard& guard);
  void queue_behind_others(OrderedThread& own);
  void give_way(OrderedThread& own);
  void end_action(OrderedThread& own, std::int64_t clock_ps, bool is_of_program);
  void come_back(OrderedThread& own);
  void unblock(OrderedThread& thread, ActionKey from, Woken woken);
  std::uint32_t wake_blocked(const void* object, std::uint32_t most, const ActionKey& from);
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
  [[nodiscard]] std::size_t index_of(const OrderedThread& thread) const {
    return static_cast<std::size_t>(&thread - threads_.data());
  }

  std::atomic<std::uint32_t> lock_{0};  // futex
  std::atomic<pthread_t> holder_{};
  std::atomic<std::uint32_t> used_{0};  // entries that were ever used
  std::uint32_t next_number_ = 0;
  std::atomic<bool> has_started_{false};
  std::atomic<bool> has_overtaken_{false};
  std::atomic<std::int64_t> now_ps_{0};
  std::atomic<std::uint64_t> progress_{1};
  std::uint64_t tickets_ = 0;
  OrderedThread* acting_ = nullptr;
  bool is_settling_ = false;  // the thread that acts waits in settle_others()
  HostMayAct host_may_act_ = nullptr;
  std::int64_t passed_ns_ = 0;  // real time that limited waits have taken, since a thread was last woken
  struct LateWake {
    const void* object = nullptr;
    std::uint32_t most = 0;
  };
  std::array<LateWake, 16> late_{};  // by handlers of signals
  std::uint32_t late_count_ = 0;
  std::array<std::atomic<pthread_t>, room> selves_{};
  std::array<OrderedThread, room> threads_{};
  Words own_words_{};
  Words* words_ = &own_words_;
};

}  // namespace apenet::ipc
