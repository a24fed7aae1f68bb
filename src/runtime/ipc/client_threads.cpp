// Client's side of the order of threads. docs/internals/threads.md states the rule.

#include <algorithm>
#include <ctime>
#include <utility>

#include "runtime/ipc/client.hpp"
#include "runtime/ipc/single_threaded.hpp"

namespace apenet::ipc {

OrderedThread* Client::find_ordered() const {
  return order_->find(pthread_self());
}

void Client::begin_order() {
  if (order_ != nullptr) order_->start(process_time_ps(), &block_->thread_words);
}

std::int64_t Client::thread_time_ps() const {
  const OrderedThread* const own = ordered();
  return own == nullptr ? process_time_ps() : own->key.clock_ps;
}

// What was posted or taken meanwhile ends the rows that a thread has counted.
void Client::refresh_calls(OrderedThread& own) {
  const std::uint64_t progress = order_->progress();
  if (std::exchange(own.calls_progress, progress) != progress) own.calls.moved();
}

// From here on the process's clock is not behind the thread's own.
void Client::begin_action(OrderedThread& own) {
  order_->enter(own);
  // A process that dies within an action leaves its work half done, at a moment that the host determines.
  if (block_->lock.acquire_among(own.process)) block_->lock.note_several();
  block_->lock.note_ordered();
  refresh_calls(own);
  progress().swap(own.calls);
  if (!order_->has_started() || block_->identity.finalised != 0) return;
  Clock& clock = block_->clock;
  clock.slept_ps.add(clock.advance_to(own.key.clock_ps));
}

void Client::end_action(OrderedThread& own) {
  progress().swap(own.calls);
  own.calls_progress = order_->progress();
  block_->lock.unlock();
  if (order_->has_overtaken()) block_->lock.note_several();
  order_->leave(own, process_time_ps());
}

std::int64_t Client::pass_until_ps(std::int64_t until_ps) {
  Clock& clock = block_->clock;
  if (is_member_) {  // the order has let it come there
    clock.slept_ps.add(clock.advance_to(until_ps));
    return until_ps;
  }
  if (block_->identity.finalised != 0) {
    const std::int64_t ps = std::max<std::int64_t>(until_ps - process_time_ps(), 0);
    clock.afterwards_ps.add(ps);
    clock.slept_ps.add(ps);
    return until_ps;
  }
  // Another thread may have brought the process there.
  const bool has_others = !is_single_threaded() || (order_ != nullptr && order_->has_processes());
  if (has_others && until_ps <= clock.now_ps()) return until_ps;
  block_->lock.acquire();
  if (is_suspended_or_overlapped()) reenter();
  clock.acted_ps.set(clock.now_ps());
  if (is_single_threaded() && until_ps == end_of_time_ps) {
    clock.slept_ps.add(clock.advance_to(until_ps));
    settle();
  } else if (is_single_threaded()) {
    if (until_ps >= clock.horizon_ps) {
      wait(Wait::until, until_ps, true);
      until_ps = std::min(until_ps, block_->grant.deadline_ps);
    }
    clock.slept_ps.add(clock.advance_to(until_ps));
  } else {
    // The order has granted the thread this time: a signal does not end the wait.
    if (until_ps >= clock.horizon_ps || until_ps == end_of_time_ps) {
      do wait(Wait::until, until_ps);
      while (block_->grant.deadline_ps < until_ps);
    }
    clock.slept_ps.add(clock.advance_to(until_ps));
  }
  clock.acted_ps.set(0);
  block_->lock.unlock();
  return until_ps;
}

std::int64_t Client::sleep(std::int64_t ps, OwnFileWait* files) {
  const std::int64_t now_ps = thread_time_ps();
  const std::int64_t until_ps = now_ps + std::min(ps, end_of_time_ps - now_ps);
  OrderedThread* const own = ordered();
  if (own == nullptr || !order_->has_started()) {
    if (!is_single_threaded()) block_->lock.note_thread();
    return until_ps - pass_until_ps(until_ps);
  }
  Woken woken = Woken::no;
  if (files == nullptr) {
    woken = order_->enter_at(*own, until_ps, WaitEnds::by_signal);
  } else {
    constexpr timespec none{};
    order_->enter(*own);
    auto ready = OwnFileWait::Outcome::none;
    while (ready == OwnFileWait::Outcome::none && woken != Woken::timed_out && woken != Woken::interrupted) {
      ready = files->wait(none);
      if (ready == OwnFileWait::Outcome::none)
        woken = order_->block(*own, own_files_of(*order_), until_ps, nullptr, WaitEnds::by_signal);
    }
    if (woken != Woken::timed_out) woken = Woken::interrupted;
  }
  // The process may have been stopped meanwhile.
  const std::int64_t woken_ps = woken == Woken::interrupted ? std::min(own->key.clock_ps, until_ps)
                                : woken == Woken::timed_out ? std::max(own->key.clock_ps, until_ps)
                                                            : until_ps;
  if (woken == Woken::interrupted) own->has_come_back = true;  // the signal may tell of the end of a child
  pass_until_ps(woken_ps);
  order_->leave(*own, woken_ps);
  return std::max<std::int64_t>(until_ps - woken_ps, 0);
}

void Client::tell_readers(ThreadOrder::Readers readers) {
  OrderedThread* const own = ordered();
  if (own == nullptr || !order_->has_started()) return;
  order_->enter(*own);
  order_->tell_readers(*own, readers);
  order_->leave(*own, true);
}

std::int64_t Client::next_other_ps(OrderedThread& own) {
  if (!order_->has_started()) return never_ps;
  order_->settle_others(own);
  return order_->next_other_ps(own);
}

bool Client::lets_others_act(OrderedThread& own, const Event* event, std::int64_t known_ps) {
  Clock& clock = block_->clock;
  // A thread of the library goes on until the call that leaves has ended it.
  if (!own.lives_in_call && (clock.held() || block_->progress.leaves())) return false;
  const std::int64_t first_ps = next_other_ps(own);
  if (order_->must_yield(own)) {
    ThreadOrder::yield_without_locks(own);
    return true;
  }
  if (event != nullptr) known_ps = event->time_ps;
  if (first_ps > std::max(known_ps, clock.now_ps())) return false;
  clock.wait_to(first_ps);
  ThreadOrder::yield_without_locks(own);
  return true;
}

}  // namespace apenet::ipc
