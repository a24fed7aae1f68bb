// How a thread waits for its turn.
#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "runtime/ipc/futex.hpp"
#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/thread_order_parts.hpp"

namespace apenet::ipc {
namespace {

constexpr std::int64_t idle_pause_ns = 500'000'000;
// A thread that waits for files, and leaves it to others to ask for the ends of processes, looks so often.
constexpr std::int64_t reserve_pause_ns = 50'000'000;

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

// Two of the threads that wait for files ask for the ends of processes, of two processes, since one of these
// may end itself. With a hundred threads, /proc would cost more than all that they do.
bool ThreadOrder::asks_for_ends(const OrderedThread& own) {
  const OrderedThread* first = nullptr;
  const OrderedThread* second = nullptr;
  for_each([&](const OrderedThread& thread) {
    if (thread.acts != ThreadActs::blocked || !may_end_with_process(thread)) return;
    if (first == nullptr) {
      first = &thread;
    } else if (second == nullptr && thread.process != first->process) {
      second = &thread;
    }
  });
  return &own == first || &own == second;
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
  own.blocks_child_signal = has_processes() && guard.blocks_in_wait(SIGCHLD);
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
    const bool is_at_file = has_processes() && may_end_with_process(own);
    const bool awaits_end = own.awaits_process || (is_at_file && asks_for_ends(own));
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
                              : is_at_file                      ? reserve_pause_ns
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
    bool is_interrupted = end_by_signal(own.ends) && guard.has_signal();
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
    if (own.asked_signal != 0 && own.is_asked_for_stop) {
      hear_of_stop(own, guard);
      continue;
    }
    if (own.asked_signal == SIGCHLD) {
      guard.let_in();  // its handler acts now
      if (own.acts == ThreadActs::acting) break;
    }
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
               ((!checks && !is_at_file) || has_checked_long()) && !is_being_changed(own) &&
               own.readiness->is_there()) {
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

}  // namespace apenet::ipc
