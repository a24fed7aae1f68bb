// The processes of the order: their begin, their end, and what the host shows of them.
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <memory>
#include <utility>

#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/thread_order_parts.hpp"

namespace apenet::ipc {
namespace {

// At which a thread waits for the end of a child of its process.
constexpr std::uint64_t end_of_child = 1;

// A process that has just been started may come before its parent has noted its number.
constexpr timespec join_pause{.tv_sec = 0, .tv_nsec = 100'000};
constexpr int most_join_pauses = 20'000;

// If those have ended that ask for the ends of processes, others do after this time.
constexpr std::int64_t most_unasked_ns = 100'000'000;

// The first thread of the rank, or of a process that another one has started.
bool is_first(const OrderedThread& thread) {
  return thread.leads || thread.key.number == 0;
}

}  // namespace

std::uint32_t ThreadOrder::own_process() {
  std::uint32_t own = process_.load(std::memory_order_relaxed);
  if (own == 0) {
    own = static_cast<std::uint32_t>(host_call(SYS_getpid, 0, 0));
    process_.store(own, std::memory_order_relaxed);
  }
  return own;
}

OrderObject ThreadOrder::name_of(const void* object) const {
  const auto at = reinterpret_cast<std::uint64_t>(object);
  const auto begin = reinterpret_cast<std::uint64_t>(table_);
  if (at - begin < sizeof(OrderTable)) return {.at = at - begin + 1, .process = 0};
  if ((at & OrderObject::shared_mark) != 0) return {.at = at, .process = 0};
  return {.at = at, .process = process_.load(std::memory_order_relaxed)};
}

void ThreadOrder::share(OrderTable& table) {
  if (in_use() || is_shared()) return;
  std::uint32_t owner = table.owner.load();
  if (owner != 0 && owner != own_process() && !has_process_ended(owner)) return;
  if (!table.owner.compare_exchange_strong(owner, own_process())) return;
  table.lock = 0;
  table.used = 0;
  table.acting = 0;
  table.processes = 0;
  table.progress = 1;
  for (OrderFile& file : table.made_files.files) file.made.kind = FileKind::none;
  table.has_started = own_table_.has_started.load();
  table.has_mixed_waits = own_table_.has_mixed_waits.load();
  table.now_ps = own_table_.now_ps.load();
  table_ = &table;
  words_ = &table.words;
}

OrderedThread* ThreadOrder::create_process(const OrderedThread& creator) {
  Guard guard(*this);
  OrderedThread* const fresh = add(creator.key.clock_ps);
  if (fresh == nullptr) return nullptr;
  fresh->key.round = creator.key.round;
  fresh->settled_key = fresh->key;
  fresh->process = 0;
  fresh->parent = own_process();
  fresh->leads = true;
  table_->processes.fetch_add(1);
  table_->process_changes.fetch_add(1);
  return fresh;
}

void ThreadOrder::note_process(OrderedThread& created, std::uint32_t process) {
  Guard guard(*this);
  if (process == 0) {
    drop(created);
    dispatch();
    return;
  }
  created.process = process;
  created.id = static_cast<std::int32_t>(process);
}

void ThreadOrder::become(OrderTable& table, OrderedThread& own) {
  table_ = &table;
  words_ = &table.words;
  selves_[index_of(own)] = pthread_self();
  Guard guard(*this);
  own.process = own_process();
  own.id = own_thread_id();
}

OrderedThread* ThreadOrder::join(OrderTable& table) {
  const auto own_id = static_cast<std::uint32_t>(host_call(SYS_getpid, 0, 0));
  const auto parent = static_cast<std::uint32_t>(host_call(SYS_getppid, 0, 0));
  if (table.owner.load() == 0 || table.owner.load() == own_id || in_use()) return nullptr;
  OrderTable* const before = table_;
  table_ = &table;
  words_ = &table.words;
  OrderedThread* own = nullptr;
  bool may_come = true;
  for (int i = 0; own == nullptr && may_come && i < most_join_pauses; ++i) {
    if (i > 0) host_call(SYS_nanosleep, &join_pause, static_cast<timespec*>(nullptr));
    Guard guard(*this);
    may_come = false;
    for_each([&](OrderedThread& thread) {
      if (thread.leads && thread.process == own_id) own = &thread;
      may_come = may_come || (thread.leads && thread.process == 0 && thread.parent == parent);
    });
  }
  if (own == nullptr) {
    table_ = before;
    words_ = &before->words;
    return nullptr;
  }
  Guard guard(*this);
  for_each([&](OrderedThread& thread) {  // threads of the program that this one has replaced
    if (thread.process != own_id || &thread == own) return;
    if (is_acting(thread)) table_->acting = 0;
    drop(thread);
  });
  if (is_acting(*own)) table_->acting = 0;
  const ActionKey key = own->key;
  const std::uint32_t of = own->parent;
  const LeftAlarm alarm = own->left_alarm;
  std::construct_at(own);
  own->key = key;
  own->left_alarm = alarm;
  own->process = own_id;
  own->parent = of;
  own->leads = true;
  own->acts = ThreadActs::running;
  own->id = own_thread_id();
  selves_[index_of(*own)] = pthread_self();
  change_files(own->key);  // the host has closed some when it has executed the program
  dispatch();
  return own;
}

OrderedThread* ThreadOrder::find_process(std::uint32_t process) {
  Guard guard(*this);
  return first_of(process);
}

bool ThreadOrder::knows_process(std::uint32_t process) {
  Guard guard(*this);
  bool knows = false;
  for_each([&](const OrderedThread& thread) {
    knows = knows || (thread.process == process && thread.acts != ThreadActs::ended);
  });
  return knows;
}

bool ThreadOrder::acts_in_order(std::uint32_t process) {
  Guard guard(*this);
  bool acts = false;
  for_each([&](const OrderedThread& thread) {
    acts = acts || (thread.process == process && thread.acts != ThreadActs::outside);
  });
  return acts;
}

bool ThreadOrder::is_child(const OrderedThread& thread, std::uint32_t process) {
  return thread.leads && thread.process != 0 && thread.parent == own_process() &&
         (process == 0 || thread.process == process);
}

OrderedThread* ThreadOrder::find_ended(std::uint32_t process) {
  Guard guard(*this);
  OrderedThread* found = nullptr;
  for_each([&](OrderedThread& thread) {
    const bool has_ended = is_child(thread, process) && thread.acts == ThreadActs::ended;
    if (has_ended && (found == nullptr || thread.ticket < found->ticket)) found = &thread;
  });
  return found;
}

Woken ThreadOrder::await_end(OrderedThread& own, std::uint32_t process, std::int64_t deadline_ps) {
  Guard guard(*this, Guard::Signals::wait);
  if (guard.is_nested()) return Woken::interrupted;
  bool may_come = false;
  for_each([&](const OrderedThread& thread) {
    may_come = may_come || (is_child(thread, process) && thread.acts != ThreadActs::outside);
  });
  if (!may_come) return Woken::no;
  own.ended_by = 0;
  own.acts = ThreadActs::blocked;
  own.object = {.at = end_of_child, .process = own_process()};
  own.awaits_process = true;
  own.ticket = ++table_->tickets;
  own.deadline_ps = deadline_ps;
  own.owner = 0;
  own.readiness = nullptr;
  own.woken = Woken::no;
  own.ends = WaitEnds::by_signal;
  if (is_acting(own)) table_->acting = 0;
  wake_readers(own.key);
  dispatch();
  return park(own, guard);
}

bool ThreadOrder::has_child(std::uint32_t process) {
  Guard guard(*this);
  bool has = false;
  for_each([&](const OrderedThread& thread) { has = has || is_child(thread, process); });
  return has;
}

bool ThreadOrder::has_child_outside(std::uint32_t process) {
  Guard guard(*this);
  bool has = false;
  for_each([&](const OrderedThread& thread) {
    has = has || (is_child(thread, process) && thread.acts == ThreadActs::outside);
  });
  return has;
}

bool ThreadOrder::is_ending(std::uint32_t process) {
  Guard guard(*this);
  bool is = false;
  for_each([&](OrderedThread& thread) {
    if (!is_child(thread, process)) return;
    const bool has_told = thread.acts == ThreadActs::ending || thread.acts == ThreadActs::ended;
    is = is || has_told || has_ended(thread);
  });
  return is;
}

void ThreadOrder::forget_process(OrderedThread& process) {
  Guard guard(*this);
  if (is_acting(process)) table_->acting = 0;
  const std::uint32_t parent = process.parent;
  drop(process);
  wake_parents(parent);
  dispatch();
}

// A thread waits: what its process has written past the shim, as the C library's streams do, is there by now.
void ThreadOrder::wake_readers(const ActionKey& from) {
  if (has_processes()) wake_blocked(name_of(&table_->files), UINT32_MAX, from);
}

// A process has changed files without a call of ours.
void ThreadOrder::change_files(const ActionKey& from) {
  tell_mixed_waits();
  wake_blocked(name_of(&table_->files), UINT32_MAX, from);
  for_each([&](OrderedThread& thread) {
    if (thread.acts == ThreadActs::at_file) release_at_file(thread, from);
  });
}

// Who waits for the end of a child waits in the host, if that one does.
void ThreadOrder::wake_parents(std::uint32_t parent) {
  for_each([&](OrderedThread& thread) {
    const bool waits = thread.acts == ThreadActs::blocked && thread.awaits_process;
    if (waits && thread.process == parent) unblock(thread, ActionKey{}, Woken::signalled);
  });
}

bool ThreadOrder::retire(OrderedThread& own) {
  Guard guard(*this);
  std::uint32_t count = 0;
  for_each([&](const OrderedThread& /*thread*/) { ++count; });
  if (count != 1 || own.leads || own.acts != ThreadActs::running || guard.is_nested()) return false;
  drop(own);
  table_->next_number = 0;
  table_->used = 0;
  return true;
}

void ThreadOrder::check_killed() {
  Guard guard(*this);
  std::array<std::uint32_t, 64> ended{};
  std::size_t count = 0;
  for_each([&](const OrderedThread& thread) {
    const bool waits = thread.acts == ThreadActs::blocked || thread.acts == ThreadActs::at_gate;
    if (waits && count < ended.size() && is_child(thread, 0) && has_ended(thread))
      ended[count++] = thread.process;
  });
  for (std::size_t i = 0; i < count; ++i) note_process_ended(ended[i]);
}

std::size_t ThreadOrder::list_processes(Processes& found) {
  Guard guard(*this);
  std::size_t count = 0;
  for_each([&](const OrderedThread& thread) {
    if (is_first(thread) && thread.process != own_process()) found[count++] = thread.process;
  });
  return count;
}

void ThreadOrder::tell_of_end() {
  Guard guard(*this);
  if (guard.is_nested()) return;
  if (OrderedThread* const next = first_to_wait(); next != nullptr) wake_one(*next);
}

void ThreadOrder::ask_process(std::uint32_t process, int signal, const OrderedThread& from) {
  Guard guard(*this);
  tell_mixed_waits();
  for_each([&](OrderedThread& thread) {
    const bool waits = thread.acts == ThreadActs::blocked && thread.asked_signal == 0;
    if (is_first(thread) && thread.process == process && waits) ask_one(thread, signal, from.key);
  });
}

void ThreadOrder::announce_signal(std::uint32_t process, int signal, const OrderedThread& from) {
  Guard guard(*this);
  for_each([&](OrderedThread& thread) {
    if (is_first(thread) && thread.process == process) announce_one(thread, signal, from.key);
  });
}

void ThreadOrder::note_killed(std::uint32_t process, const OrderedThread& from) {
  Guard guard(*this);
  note_process_ended(process, &from.key);
}

// Requires the lock, as what follows.
void ThreadOrder::note_process_ended(std::uint32_t process, const ActionKey* killed_at) {
  OrderedThread* first = nullptr;
  ActionKey last;
  for_each([&](OrderedThread& thread) {
    if (thread.process == process && thread.leads) first = &thread;
    if (thread.process != process) return;
    const bool was_left =
        thread.acts == ThreadActs::outside || thread.acts == ThreadActs::at_file ||
        (thread.acts == ThreadActs::blocked && thread.asked_signal == 0 && killed_at == nullptr);
    last = std::max(last, thread.key);
    if (was_left) last = std::max(last, ActionKey{.clock_ps = now_ps()});
    if (thread.asked_signal != 0) last = std::max(last, thread.asked_from);
  });
  if (killed_at != nullptr) last = std::max(last, *killed_at);
  if (first != nullptr && (first->acts == ThreadActs::ending || first->acts == ThreadActs::ended)) return;
  // Who waits for a lock of one of its threads learns of the end when that happens.
  const auto pass_locks_of = [&](const OrderedThread& owner) {
    for_each([&](OrderedThread& thread) {
      const bool waits = thread.acts == ThreadActs::blocked && thread.owner == place_of(&owner);
      if (waits) thread.owner = place_of(first);
    });
  };
  for_each([&](OrderedThread& thread) {
    if (thread.parent == process && thread.acts == ThreadActs::ended) drop(thread);
    if (thread.process != process) return;
    if (is_acting(thread)) table_->acting = 0;
    pass_locks_of(thread);
    if (&thread != first) drop(thread);
  });
  if (first != nullptr) {
    last.number = first->key.number;
    first->key = last;
    first->acts = ThreadActs::ending;
    first->deadline_ps = OrderedThread::no_deadline_ps;
    first->is_stopped = false;
  } else {
    change_files(last);  // the rank's own end is no action
  }
  note_settled();
  dispatch();
}

// The host prefers the first thread. If all block the signal, one may wait for it.
OrderedThread* ThreadOrder::receiver_of_end(std::uint32_t process) {
  OrderedThread* receiver = nullptr;
  for_each([&](OrderedThread& thread) {
    if (thread.process != process || thread.acts == ThreadActs::ending || thread.acts == ThreadActs::ended)
      return;
    const auto place = [](const OrderedThread& one) {
      return std::pair(one.blocks_child_signal, one.key.number);
    };
    if (receiver == nullptr || place(thread) < place(*receiver)) receiver = &thread;
  });
  return receiver;
}

bool ThreadOrder::hears_signals(const OrderedThread& thread) {
  return thread.acts == ThreadActs::blocked && thread.asked_signal == 0;
}

// The end of a process, in order.
void ThreadOrder::end_process(OrderedThread& first) {
  if (first.key.clock_ps > now_ps()) table_->now_ps.store(first.key.clock_ps, std::memory_order_relaxed);
  first.acts = ThreadActs::ended;
  table_->process_changes.fetch_add(1);
  first.ticket = ++table_->tickets;
  const ActionKey key = first.key;
  OrderedThread* const receiver = receiver_of_end(first.parent);
  change_files(key);  // it has closed its ends of pipes
  for_each([&](OrderedThread& thread) {
    const bool waits = thread.acts == ThreadActs::blocked && thread.owner == place_of(&first);
    if (waits) unblock(thread, key, Woken::signalled);
  });
  bool has_parent = false;
  for_each([&](OrderedThread& thread) {
    if (thread.process != first.parent || thread.acts == ThreadActs::ended) return;
    has_parent = true;
    if (thread.acts == ThreadActs::blocked && thread.awaits_process) unblock(thread, key, Woken::signalled);
  });
  if (receiver != nullptr && hears_signals(*receiver)) {
    ask_one(*receiver, SIGCHLD, key);
  } else if (receiver != nullptr && receiver->checks_files) {
    receiver->signal_at_check = SIGCHLD;
  }
  if (!has_parent) drop(first);
}

bool ThreadOrder::has_ended(const OrderedThread& first) {
  if (first.parent != own_process()) return has_process_ended(first.process);
  siginfo_t info{};
  // The fourth argument is a number here.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const auto* const options = reinterpret_cast<const void*>(std::uintptr_t{WEXITED | WNOHANG | WNOWAIT});
  const int error =
      host_call(SYS_waitid, P_PID, first.process, reinterpret_cast<std::uint64_t>(&info), options);
  return error != 0 || info.si_pid != 0;
}

void ThreadOrder::note_ended_processes() {
  std::array<std::uint32_t, 64> ended{};
  std::size_t count = 0;
  for_each([&](const OrderedThread& thread) {
    const bool is_over = thread.acts == ThreadActs::ending || thread.acts == ThreadActs::ended;
    const bool is_other = is_first(thread) && thread.process != 0 && thread.process != own_process();
    if (!is_over && is_other && count < ended.size() && has_ended(thread)) ended[count++] = thread.process;
  });
  for (std::size_t i = 0; i < count; ++i) note_process_ended(ended[i]);
}

// Asks the host about the one that acts, and about those for which the thread waits: nobody else would.
void ThreadOrder::check_ended(const OrderedThread& own) {
  const OrderedThread* const acts = acting();
  if (acts != nullptr && acts->process != own_process() && has_process_ended(acts->process))
    note_process_ended(acts->process);
  const std::int64_t now_ns = host_now_ns();
  const bool awaits_any = may_end_with_process(own) &&
                          (asks_for_ends(own) || now_ns - table_->ends_checked_ns >= most_unasked_ns);
  if (!own.awaits_process && !awaits_any) return;
  if (awaits_any) table_->ends_checked_ns = now_ns;
  std::array<std::uint32_t, 64> ended{};
  std::size_t count = 0;
  for_each([&](const OrderedThread& thread) {
    const bool is_over = thread.acts == ThreadActs::ending || thread.acts == ThreadActs::ended;
    const bool is_checked = is_child(thread, 0) || (awaits_any && is_first(thread) && thread.process != 0 &&
                                                    thread.process != own_process());
    if (!is_over && is_checked && count < ended.size() && has_ended(thread)) ended[count++] = thread.process;
  });
  for (std::size_t i = 0; i < count; ++i) note_process_ended(ended[i]);
}

// The process that held the lock has ended, maybe in the midst of a change.
void ThreadOrder::repair() {
  table_->acting = 0;
  for_each([&](OrderedThread& thread) {
    if (thread.acts == ThreadActs::acting) table_->acting = place_of(&thread);
    wake_one(thread);
  });
}

}  // namespace apenet::ipc
