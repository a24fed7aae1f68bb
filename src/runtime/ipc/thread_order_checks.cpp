// What the host tells of a thread for which others wait: whether it will come.
#include <algorithm>
#include <cstdint>

#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/thread_order_parts.hpp"

namespace apenet::ipc {
namespace {

// A process that has been stopped is waited for, some two seconds: whoever has stopped it may let it go on.
constexpr std::uint32_t checks_until_stopped = 500;
// Likewise one whose first thread has ended: on a busy host its other threads may take long to end.
constexpr std::uint32_t checks_until_ended = 500;

}  // namespace

// A thread that has ended in the host without a word to the order.
void ThreadOrder::note_thread_ended(OrderedThread& thread) {
  const bool is_of_other = thread.process != own_process();
  if (is_of_other && has_process_ended(thread.process)) return note_process_ended(thread.process);
  // The first thread of a process may end before the others, or with its process, which is about to end then.
  if (thread.leads && is_of_other && ++thread.checks < checks_until_ended) return;
  if (thread.leads) return note_outside(thread);
  drop(thread);
  dispatch();
}

// The thread is blocked, and no thread of its process can wake it before another one has acted. Or it runs or
// sleeps for very long, or those do that may wake it: a thread that waits for a lock of the C library goes on
// when the host lets the holder run.
bool ThreadOrder::is_left(OrderedThread& thread, const SeenThread& seen, std::int64_t pause_ns) {
  const bool is_same =
      thread.checked_key == thread.key && thread.checked_actions == thread.actions && thread.cpu_ns >= 0;
  const bool runs = seen.state == ThreadState::runs;
  const std::int64_t used_ns = is_same ? seen.cpu_ns - thread.cpu_ns : 0;
  const std::int64_t others_cpu_ns =
      process_cpu_ns_of(static_cast<std::int32_t>(thread.process)) - seen.cpu_ns;
  if (!is_same || !runs) thread.cpu_ns = seen.cpu_ns;
  if (!is_same || runs) thread.others_cpu_ns = others_cpu_ns;
  if (!is_same) thread.limited_ns = 0;
  thread.checked_key = thread.key;
  thread.checked_actions = thread.actions;
  const bool is_in_call = is_between_actions_of_call(thread);
  if (runs) return used_ns >= (is_in_call ? most_call_cpu_ns : most_cpu_ns);
  if (is_in_call && !thread.may_wait_at_file) return false;

  class MayWake final : public ThreadChoice {
   public:
    MayWake(ThreadOrder& order, const OrderedThread& blocked) : order_(order), blocked_(blocked) {}
    bool has(std::int32_t id) override {
      if (id == own_ || id == blocked_.id) return false;
      bool waits = false;
      order_.for_each([&](const OrderedThread& other) {
        if (other.process != blocked_.process || other.id != id) return;
        waits = other.acts == ThreadActs::at_gate || other.acts == ThreadActs::blocked;
      });
      return !waits;
    }

   private:
    ThreadOrder& order_;
    const OrderedThread& blocked_;
    std::int32_t own_ = own_thread_id();
  };
  ThreadState liveliest = seen.state;
  const bool has_said_so = thread.is_known_outside || thread.may_wait_at_file;
  if (!has_said_so && liveliest == ThreadState::blocked) {
    MayWake others(*this, thread);
    liveliest = liveliest_of(static_cast<std::int32_t>(thread.process), others);
  }
  if (!has_said_so && liveliest != ThreadState::blocked) {
    thread.checks = 0;
    if (liveliest == ThreadState::runs) return others_cpu_ns - thread.others_cpu_ns >= most_cpu_ns;
    thread.limited_ns += pause_ns;
    return thread.limited_ns >= most_limited_ns;
  }
  if (!is_same || used_ns > 0) thread.checks = 0;
  return ++thread.checks >= (seen.is_stopped ? checks_until_stopped : checks_until_blocked);
}

void ThreadOrder::check_thread(OrderedThread* first, std::int64_t pause_ns) {
  const bool may_wait = first != nullptr && (first->acts == ThreadActs::running || first->may_wait_at_file ||
                                             is_between_actions_of_call(*first));
  if (!may_wait || first->id == 0) return;
  const SeenThread seen = see_thread(static_cast<std::int32_t>(first->process), first->id);
  if (seen.state == ThreadState::ended) return note_thread_ended(*first);
  if (!is_left(*first, seen, pause_ns)) return;
  const bool is_of_other = first->process != own_process();
  const bool is_blocked = seen.state != ThreadState::runs;
  if (!first->is_known_outside) first->awaits_host = is_blocked && (is_of_other || !seen.is_in_futex);
  note_left(*first, is_blocked);
  if (!is_of_other || first->acts != ThreadActs::outside) return;
  table_->process_changes.fetch_add(1);
  // Who waits for what it may do waits in the host.
  wake_parents(first->parent);
  wake_blocked(name_of(&table_->files), UINT32_MAX, ActionKey{});
  dispatch();
}

// Actions that cost no virtual time may go on without end, as those of `cat /dev/zero`. After ten seconds of
// processor time in which virtual time has come no further than a thousandth of the way to the next thread,
// that one goes first.
void ThreadOrder::check_endless(OrderedThread& own, SeenProgress& seen) {
  OrderedThread* const first = least();
  if (first == nullptr || first->process == own.process || first_to_wait() != &own) return;
  std::int64_t cpu_ns = 0;
  for_each([&](const OrderedThread& thread) {
    if (thread.leads && thread.process != own.process)
      cpu_ns += process_cpu_ns_of(static_cast<std::int32_t>(thread.process));
  });
  constexpr std::int64_t parts = 1000;
  const std::int64_t passed_ps = now_ps() - seen.now_ps;
  if (seen.cpu_ns < 0 || cpu_ns < seen.cpu_ns || passed_ps > (acts_at(own).clock_ps - now_ps()) / parts) {
    seen = {.now_ps = now_ps(), .cpu_ns = cpu_ns};
  } else if (cpu_ns - seen.cpu_ns >= most_cpu_ns && first->acts == ThreadActs::running) {
    table_->has_overtaken = true;
    note_outside(*first);
  }
}

// It is blocked, or runs without end.
void ThreadOrder::note_left(OrderedThread& thread, bool is_blocked) {
  if (is_acting(thread) && !is_blocked && !is_between_actions_of_call(thread)) return;
  if (is_acting(thread)) table_->acting = 0;
  if (!thread.may_wait_at_file || !is_blocked) return note_outside(thread);
  thread.acts = ThreadActs::at_file;
  wake_readers(thread.key);  // it may have written before
  note_settled();
  dispatch();
}

// The others go on without the thread.
void ThreadOrder::note_outside(OrderedThread& thread) {
  thread.acts = ThreadActs::outside;
  note_settled();
  dispatch();
}

}  // namespace apenet::ipc
