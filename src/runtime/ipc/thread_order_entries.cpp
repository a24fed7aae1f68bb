// Which threads the order knows.
#include <memory>

#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/thread_order_parts.hpp"

namespace apenet::ipc {

OrderedThread* ThreadOrder::find(pthread_t thread) {
  const std::uint32_t used = table_->used.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < used; ++i) {
    if (selves_[i].load(std::memory_order_relaxed) == thread) return &table_->threads[i];
  }
  return nullptr;
}

OrderedThread* ThreadOrder::find_by_id(std::int32_t id) {
  const Guard guard(*this);
  const std::uint32_t used = table_->used.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < used; ++i) {
    OrderedThread& thread = table_->threads[i];
    if (thread.id.load(std::memory_order_relaxed) == id && thread.acts != ThreadActs::ended) return &thread;
  }
  return nullptr;
}

OrderedThread* ThreadOrder::add(std::int64_t clock_ps) {
  const std::uint32_t used = table_->used.load(std::memory_order_relaxed);
  std::uint32_t at = 0;
  while (at < used && table_->threads[at].acts != ThreadActs::free) ++at;
  if (at == most_threads) return nullptr;
  OrderedThread& fresh = *std::construct_at(&table_->threads[at]);
  fresh.key = {.clock_ps = clock_ps, .round = 0, .number = table_->next_number++};
  fresh.settled_key = fresh.key;
  fresh.process = own_process();
  fresh.runs_alone = runs_alone_;
  fresh.acts = ThreadActs::running;
  if (at == used) table_->used.store(used + 1, std::memory_order_release);
  return &fresh;
}

OrderedThread* ThreadOrder::create(OrderedThread* creator) {
  Guard guard(*this);
  OrderedThread* const fresh = add(creator == nullptr ? now_ps() : creator->key.clock_ps);
  if (fresh != nullptr && creator != nullptr) fresh->key.round = creator->key.round;
  if (fresh != nullptr) fresh->settled_key = fresh->key;
  return fresh;
}

OrderedThread* ThreadOrder::adopt(std::int64_t clock_ps) {
  Guard guard(*this);
  OrderedThread* const fresh = add(clock_ps);
  if (fresh == nullptr) return nullptr;
  selves_[index_of(*fresh)] = pthread_self();
  fresh->id = own_thread_id();
  return fresh;
}

// The host uses the identity of a thread again after its end.
void ThreadOrder::note_identity(OrderedThread& created, pthread_t thread) {
  if (OrderedThread* before = find(thread); before != nullptr && before != &created) end(*before);
  selves_[index_of(created)] = thread;
}

void ThreadOrder::run_alone() {
  Guard guard(*this);
  runs_alone_ = true;
  for_each([this](OrderedThread& thread) {
    if (thread.process == own_process()) thread.runs_alone = true;
  });
}

// The thread runs, and nobody has waited for it.
void ThreadOrder::begin_alone(OrderedThread& own) {
  if (!own.runs_alone || !table_->has_started || own.acts != ThreadActs::running) return;
  enter(own);
  leave_no_trace(own);
}

void ThreadOrder::begin(OrderedThread& own) {
  note_identity(own, pthread_self());
  {
    const Guard guard(*this);
    own.id = own_thread_id();
    for_each([&](const OrderedThread& thread) {
      if (thread.acts == ThreadActs::blocked && thread.object == name_of(&own))
        (*words_)[index_of(thread)].thread_id = own.id.load();
    });
  }
  begin_alone(own);
  if (!own.lives_in_call) return;
  Guard guard(*this, Guard::Signals::wait);
  own.call_depth = 1;
  if (table_->has_started) return;
  own.acts = ThreadActs::blocked;
  own.object = name_of(&table_->has_started);
  own.ticket = ++table_->tickets;
  dispatch();
  park(own, guard);
}

void ThreadOrder::end(OrderedThread& own) {
  Guard guard(*this);
  if (is_acting(own)) table_->acting = 0;
  drop(own);
  dispatch();
}

void ThreadOrder::drop(OrderedThread& thread) {
  wake_blocked(name_of(&thread), UINT32_MAX, thread.key);
  selves_[index_of(thread)] = pthread_t{};
  if (thread.leads) table_->processes.fetch_sub(1);
  std::construct_at(&thread);
  note_settled();
}

void ThreadOrder::start(std::int64_t clock_ps, Words* words) {
  Guard guard(*this);
  if (words != nullptr && !is_shared()) {
    Words& before = *words_;
    words_ = words;
    for_each([&](const OrderedThread& thread) {  // who waits there goes to the new one
      ThreadWord& word = before[index_of(thread)];
      word.changes.fetch_add(1);
      futex_wake(word.changes);
    });
  }
  for_each([&](OrderedThread& thread) {
    thread.key.clock_ps = clock_ps;
    thread.key.round = 0;
    thread.settled_key = thread.key;
  });
  table_->now_ps = clock_ps;
  table_->has_started = true;
  wake_blocked(name_of(&table_->has_started), UINT32_MAX, {.clock_ps = clock_ps});
}

void ThreadOrder::reset() {
  for (std::atomic<pthread_t>& self : selves_) self.store(pthread_t{}, std::memory_order_relaxed);
  holder_ = pthread_t{};
  late_count_ = 0;
  granted_ = nullptr;
  process_ = 0;
  table_ = &own_table_;
  words_ = &own_table_.words;
  own_table_.lock = 0;
  own_table_.acting = 0;
  own_table_.has_started = false;
  own_table_.used = 0;
}

}  // namespace apenet::ipc
