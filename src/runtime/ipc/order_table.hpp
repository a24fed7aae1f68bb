// What the threads of a rank, and of the processes that it has started, have in common: OrderTable, in memory
// that they share. ThreadOrder changes it; its order is that of docs/internals/threads.md.
#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <compare>
#include <csignal>
#include <cstddef>
#include <cstdint>

#include "runtime/ipc/order_files.hpp"
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
  at_file,  // is blocked in the host, at a file that only threads of the order make ready
  ending,   // the first thread of a process that has ended in the host: its end is an action at its key
  ended,    // after that, until its parent has waited for it
};

// What ends a wait early, besides what it waits for.
enum class WaitEnds : std::uint8_t {
  by_thread,  // nothing
  by_cancel,
  by_signal,        // the handler of one, or a cancellation
  by_final_signal,  // likewise; a handler with SA_RESTART may run without a word
};

constexpr bool end_by_signal(WaitEnds ends) {
  return ends == WaitEnds::by_signal || ends == WaitEnds::by_final_signal;
}

// In a wait for signals: those that the thread will not let in when the wait ends. nullptr: those that it
// blocks now.
inline constinit thread_local const sigset_t* blocked_in_wait = nullptr;

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

inline constexpr pollfd no_file{.fd = -1, .events = 0, .revents = 0};

// For what a blocked thread waits in the host, where a thread that is in no order may make it ready.
class HostReadiness {
 public:
  [[nodiscard]] virtual bool is_there() = 0;
  // If it is whether this file is ready; else no_file.
  [[nodiscard]] virtual pollfd only_file() const { return no_file; }

 protected:
  ~HostReadiness() = default;
};

// What a wait writes on the stack, and a jump out of it leaves behind.
using ParkMark = std::array<std::uint64_t, 32>;

// At what a thread waits: an address of its process, a place in the table, which is all processes', or the
// name of an object in memory that they share.
struct OrderObject {
  static constexpr std::uint64_t shared_mark = std::uint64_t{1} << 63U;  // in such names, and in no address
  std::uint64_t at = 0;                                                  // 0: nothing
  std::uint32_t process = 0;                                             // 0: all
  friend bool operator==(const OrderObject&, const OrderObject&) = default;
  [[nodiscard]] bool is_shared() const { return process == 0 && (at & shared_mark) != 0; }
};

// The timer of setitimer() that a process leaves to the program which it executes.
struct LeftAlarm {
  std::int64_t due_ps = 0;  // since virtual time began; 0: does not run
  std::int64_t interval_ps = 0;
};

struct OrderedThread {
  static constexpr std::int64_t no_deadline_ps = INT64_MAX;

  ActionKey key;
  // The same, but it changes in actions only: the clock of a thread that runs moves when the host lets it.
  ActionKey settled_key;
  std::uint32_t process = 0;  // its id in the host; 0: is about to be started
  std::uint32_t parent = 0;   // the process that has started this one, whose first thread it is; 0: the rank
  bool leads = false;         // the first thread of a process that another one has started
  bool runs_alone = false;    // ThreadOrder::run_alone()
  bool writes_nothing = false;  // serves the simulator, and tells of each file that it changes
  LeftAlarm left_alarm;
  bool hears_of_stops = false;    // its wait for a child ends when that one is stopped or goes on, too
  bool is_stopped = false;        // by a signal of a process of the order: nobody waits for it
  ActionKey stopped_at{};         // when that was
  std::int64_t continued_ps = 0;  // when it last went on after that
  ThreadActs acts = ThreadActs::free;
  Woken woken = Woken::no;
  WaitEnds ends = WaitEnds::by_thread;
  bool is_known_outside = false;  // it said so
  bool has_come_back = false;     // from outside, or by a signal, since it last checked for ended children
  bool awaits_host = false;       // ThreadActs::outside: for something else than a thread
  bool may_wait_at_file = false;  // while it acts: the host may block it there
  // It waits at a condition in the host, which gives this lock free without a word to the order. Set in an
  // action.
  std::atomic<const void*> host_gives{nullptr};
  int asked_signal = 0;  // ThreadActs::running: it is about to find whether this one ends its wait
  ActionKey asked_from{};
  bool is_asked_for_stop = false;    // that signal is the SIGCHLD of a child that is stopped, or goes on
  bool blocks_child_signal = false;  // SIGCHLD, in its last wait
  bool checks_files = false;         // it waits for files, and may look at them now
  int signal_to_come = 0;            // another process of the order is sending it; its action is asked_from
  int signal_at_check =
      0;             // came while it looked again for what it waits for: ends the wait if that is not there
  int ended_by = 0;  // the signal that has ended its last wait; 0: not known
  const ParkMark* mark = nullptr;     // on its stack, while it waits
  std::uint32_t program_actions = 0;  // the program's own actions at this time
  std::int64_t counted_at_ps = 0;
  std::uint32_t depth = 0;                   // depth of actions within an action, or in a signal's handler
  std::atomic<std::uint32_t> call_depth{0};  // depth of enter_call(); others read it
  bool lives_in_call = false;                // a thread of such a library: its life is one call
  std::uint64_t actions = 0;                 // that it has begun
  bool gives_way = false;                    // others go first when it ends the action
  bool owes_way = false;                     // likewise, once it has no lock of its call
  std::uint32_t locks = 0;                   // that it has taken in the call
  std::uint32_t idle_yields = 0;   // in a row, while nothing moved and nobody else could act at its time
  std::int64_t idle_since_ps = 0;  // its clock at the first of them
  std::uint64_t yielded_at = 0;    // ThreadOrder::progress() at the last
  std::atomic<std::uint32_t> grants{0};  // how often it has been let act while it waited
  std::atomic<std::int32_t> id{0};       // the host's thread id; 0: has not begun
  CallProgress calls;                    // while it does not act
  std::uint64_t calls_progress = 0;      // ThreadOrder::progress() at that time
  // ThreadActs::blocked.
  OrderObject object;
  std::uint64_t ticket = 0;  // in the order of coming; ThreadActs::ended: of the ends
  std::int64_t deadline_ps = no_deadline_ps;
  std::uint32_t owner = 0;  // place, from 1, of the owner of the lock for which it waits, or of the thread
                            // that it joins; 0: not known
  bool awaits_process = false;         // for the end of one
  HostReadiness* readiness = nullptr;  // checked now and then; nullptr: only threads of the order wake it
  pollfd awaited_file = no_file;       // the only one of `readiness`, or the last one
  OrderObject taking;                  // ThreadActs::at_gate: the object at which it has been woken
  bool is_paced = false;               // its wait has a limit in the host only because another thread may act
  // Its last empty poll, in a library that waits: ThreadOrder::progress_, its ticket, and that of the poll
  // before with the same progress, in the same call.
  static constexpr std::uint64_t no_poll = UINT64_MAX;
  std::uint64_t saw_nothing = 0;
  std::uint64_t polled = 0;
  std::uint64_t polled_before = no_poll;
  std::int64_t timer_ps = no_deadline_ps;  // when a timer of its process is due, which ends the wait
  // When the host was last asked about it.
  ActionKey checked_key{};
  std::uint64_t checked_actions = 0;
  std::int64_t cpu_ns = -1;
  std::uint32_t checks = 0;        // in a row that found it blocked, and nobody who may wake it
  std::int64_t others_cpu_ns = 0;  // CPU time of its process's other threads when it was last seen to run
  std::int64_t limited_ns = 0;     // that it, or who may wake it, has slept in the host
};

// The threads of a rank and of the processes that it has started. Zero bytes are an empty one, but for what
// begin() sets.
struct OrderTable {
  static constexpr std::uint32_t most_threads = 1024;
  using Words = std::array<ThreadWord, most_threads>;

  std::atomic<std::uint32_t> owner{0};  // the rank's process, which has begun the order; 0: none
  // Futex: the process that holds it, and a mark if others wait.
  static constexpr std::uint32_t has_waiters = 1U << 31U;
  std::atomic<std::uint32_t> lock{0};
  std::atomic<std::uint32_t> used{0};  // entries that were ever used
  std::uint32_t next_number = 0;
  std::atomic<bool> has_started{false};
  std::atomic<bool> has_overtaken{false};
  std::atomic<bool> has_mixed_waits{false};
  // Changes when a process begins, and when one goes outside.
  std::atomic<std::uint32_t> process_changes{0};
  std::atomic<std::uint32_t> processes{0};  // entries of first threads of processes
  std::atomic<std::int64_t> now_ps{0};
  std::atomic<std::uint64_t> progress{1};
  std::uint64_t tickets = 0;
  std::uint32_t acting = 0;  // its place, from 1
  bool is_settling = false;  // the thread that acts waits in settle_others()
  std::int64_t ends_checked_ns =
      0;                       // by the host's clock: when a thread has last asked for ends of processes
  std::int64_t passed_ns = 0;  // real time that limited waits have taken, since a thread was last woken
  std::uint8_t files = 0;      // an object: files that only these processes make ready
  std::array<OrderedThread, most_threads> threads{};
  Words words{};
  OrderFiles made_files{};
  // By the number of a file whose memory processes share: whether only processes of the order had mapped
  // it at a number of process_changes, both mixed with the answer in the least bit.
  std::array<std::atomic<std::uint64_t>, 256> answers_for_memory{};
};

}  // namespace apenet::ipc
