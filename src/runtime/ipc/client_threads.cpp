// Client's side of the order of threads. docs/internals/threads.md states the rule.

#include <algorithm>
#include <ctime>
#include <utility>

#include "runtime/ipc/client.hpp"
#include "runtime/ipc/single_threaded.hpp"

namespace apenet::ipc {

void Client::begin_order() {
  if (ThreadOrder* const threads = order(); threads != nullptr)
    threads->start(process_time_ps(), &block_->thread_words);
}

std::int64_t Client::thread_time_ps() const {
  const OrderedThread* const own = ordered();
  return own == nullptr ? process_time_ps() : own->key.clock_ps;
}

// What was posted or taken meanwhile ends the rows that a thread has counted.
void Client::refresh_calls(OrderedThread& own) {
  const std::uint64_t progress = order()->progress();
  if (std::exchange(own.calls_progress, progress) != progress) own.calls.moved();
}

// The thread has the lock. The process's clock is not behind its own.
void Client::begin_action(OrderedThread& own) {
  refresh_calls(own);
  progress().swap(own.calls);
  if (!order()->has_started() || block_->identity.finalised != 0) return;
  Clock& clock = block_->clock;
  clock.slept_ps.add(clock.advance_to(own.key.clock_ps));
}

void Client::end_action(OrderedThread& own) {
  progress().swap(own.calls);
  own.calls_progress = order()->progress();
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
  if (!is_single_threaded() && until_ps <= clock.now_ps()) return until_ps;
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
  if (own == nullptr || !order()->has_started()) {
    if (!is_single_threaded()) block_->lock.note_thread();
    return until_ps - pass_until_ps(until_ps);
  }
  Woken woken = Woken::no;
  if (files == nullptr) {
    woken = order()->enter_at(*own, until_ps, WaitEnds::by_signal);
  } else {
    constexpr timespec none{};
    order()->enter(*own);
    auto ready = OwnFileWait::Outcome::none;
    while (ready == OwnFileWait::Outcome::none && woken != Woken::timed_out && woken != Woken::interrupted) {
      ready = files->wait(none);
      if (ready == OwnFileWait::Outcome::none)
        woken = order()->block(*own, own_files_of(*order()), until_ps, nullptr, WaitEnds::by_signal);
    }
    if (woken != Woken::timed_out) woken = Woken::interrupted;
  }
  const std::int64_t woken_ps =
      woken == Woken::interrupted ? std::min(own->key.clock_ps, until_ps) : until_ps;
  pass_until_ps(woken_ps);
  order()->leave(*own, woken_ps);
  return until_ps - woken_ps;
}

// The earliest time at which another ordered thread acts. Requires the lock.
std::int64_t Client::next_other_ps() {
  OrderedThread* const own = ordered();
  if (own == nullptr || !order()->has_started()) return never_ps;
  order()->settle_others(*own);
  return order()->next_other_ps(*own);
}

// The thread has found nothing in a call that waits.
void Client::note_empty_poll() {
  if (OrderedThread* const own = ordered()) order()->note_empty_poll(*own);
}

// Called before the thread waits for an event that it knows, or for one that will come. Returns true if it
// should come back later, because at this time other threads of the process act, or at one before the event,
// or up to known_ps, until when no other event comes.
bool Client::lets_others_act(const Event* event, std::int64_t known_ps) {
  OrderedThread* const own = ordered();
  Clock& clock = block_->clock;
  if (own == nullptr) return false;
  // A thread of the library goes on until the call that leaves has ended it.
  if (!own->lives_in_call && (clock.held() || block_->progress.leaves())) return false;
  const std::int64_t first_ps = next_other_ps();
  if (order()->must_yield(*own)) {
    ThreadOrder::yield_without_locks(*own);
    return true;
  }
  if (event != nullptr) known_ps = event->time_ps;
  if (first_ps > std::max(known_ps, clock.now_ps())) return false;
  clock.wait_to(first_ps);
  ThreadOrder::yield_without_locks(*own);
  return true;
}

}  // namespace apenet::ipc
