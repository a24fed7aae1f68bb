// Which threads the order knows.
#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/thread_order_parts.hpp"

namespace apenet::ipc {

OrderedThread* ThreadOrder::find(pthread_t thread) {
  const std::uint32_t used = used_.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < used; ++i) {
    if (selves_[i].load(std::memory_order_relaxed) == thread) return &threads_[i];
  }
  return nullptr;
}

OrderedThread* ThreadOrder::find_by_id(std::int32_t id) {
  const std::uint32_t used = used_.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < used; ++i) {
    if (threads_[i].id.load(std::memory_order_relaxed) == id) return &threads_[i];
  }
  return nullptr;
}

OrderedThread* ThreadOrder::add(std::int64_t clock_ps) {
  const std::uint32_t used = used_.load(std::memory_order_relaxed);
  std::uint32_t at = 0;
  while (at < used && threads_[at].acts != ThreadActs::free) ++at;
  if (at == room) return nullptr;
  OrderedThread& fresh = threads_[at];
  fresh.key = {.clock_ps = clock_ps, .round = 0, .number = next_number_++};
  fresh.acts = ThreadActs::running;
  if (at == used) used_.store(used + 1, std::memory_order_release);
  return &fresh;
}

OrderedThread* ThreadOrder::create(OrderedThread* creator) {
  Guard guard(*this);
  OrderedThread* const fresh = add(creator == nullptr ? now_ps() : creator->key.clock_ps);
  if (fresh != nullptr && creator != nullptr) fresh->key.round = creator->key.round;
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

void ThreadOrder::begin(OrderedThread& own) {
  note_identity(own, pthread_self());
  Guard guard(*this);
  own.id = own_thread_id();
  for_each([&](const OrderedThread& thread) {
    if (thread.acts == ThreadActs::blocked && thread.object == &own)
      (*words_)[index_of(thread)].thread_id = own.id.load();
  });
}

void ThreadOrder::end(OrderedThread& own) {
  Guard guard(*this);
  if (acting_ == &own) acting_ = nullptr;
  drop(own);
  dispatch();
}

void ThreadOrder::drop(OrderedThread& thread) {
  wake_blocked(&thread, UINT32_MAX, thread.key);
  thread.acts = ThreadActs::free;
  selves_[index_of(thread)] = pthread_t{};
  thread.id = 0;
  thread.object = thread.taking = nullptr;
  thread.owner = nullptr;
  thread.deadline_ps = OrderedThread::no_deadline_ps;
  thread.depth = thread.call_depth = thread.looks = 0;
  thread.gives_way = false;
  thread.is_known_outside = thread.awaits_host = false;
  forget_polls(thread);
  CallProgress none;
  thread.calls.swap(none);
  thread.cpu_ns = -1;
  note_settled();
}

void ThreadOrder::start(std::int64_t clock_ps, Words* words) {
  Guard guard(*this);
  if (words != nullptr) {
    Words& before = *words_;
    words_ = words;
    for (ThreadWord& word : before) {  // who waits there goes to the new one
      word.changes.fetch_add(1);
      futex_wake(word.changes);
    }
  }
  for_each([&](OrderedThread& thread) {
    thread.key.clock_ps = clock_ps;
    thread.key.round = 0;
  });
  now_ps_ = clock_ps;
  has_started_ = true;
}

void ThreadOrder::reset() {
  const std::uint32_t used = used_.load();
  for (std::uint32_t i = 0; i < used; ++i) {
    threads_[i].acts = ThreadActs::free;
    selves_[i] = pthread_t{};
    threads_[i].id = 0;
    threads_[i].object = nullptr;
  }
  lock_ = 0;
  holder_ = pthread_t{};
  late_count_ = 0;
  acting_ = nullptr;
  has_started_ = false;
  used_ = 0;
}

}  // namespace apenet::ipc
