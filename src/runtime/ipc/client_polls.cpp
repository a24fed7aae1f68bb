// Polls of the event ring, and what a poll does that finds no visible event.
#include <algorithm>
#include <atomic>

#include "runtime/ipc/client.hpp"

namespace apenet::ipc {

const Event* Client::poll(Time cost, std::uint32_t least_events) {
  const Event* event = visible();
  if (event == nullptr) event = on_empty_poll(cost, least_events);
  if (event != nullptr) note_resumed();
  return event;
}

// There is no visible event.
const Event* Client::on_empty_poll(Time cost, std::uint32_t least_events) {
  switch (block_->progress.on_empty_poll()) {
    case Progress::Poll::tests:
      return test(false, cost);
    case Progress::Poll::spins:
      return test(true, cost);
    case Progress::Poll::progresses:
      return nullptr;
    case Progress::Poll::waits:
      break;
  }
  const Event* event = front();
  if (OrderedThread* const own = ordered()) [[unlikely]]
    order_->note_empty_poll(*own, timer_ps());
  if (lets_others_act(event, 0)) return nullptr;
  if (stops_at_timer(event, 0)) return nullptr;
  if (const OrderedThread* const own = ordered(); own != nullptr && own->saw_nothing != order_->progress())
    return nullptr;  // what has been told meanwhile may end the wait
  if (event == nullptr) {
    if (block_->progress.use_grant()) return nullptr;
    if (timer_ps() != never_ps) least_events = 1;
    block_->grant.least_events = least_events;
    resumes_at_ = block_->rings.event_tail + least_events - 1;
    const std::int64_t first_ps = std::min(next_other_ps(), timer_ps());
    const std::int64_t alarm_ps = first_ps == never_ps ? 0 : std::max(first_ps, block_->clock.now_ps());
    if (order_ != nullptr && order_->in_use())
      block_->grant.slept_since_ps.store(order_->oldest_sleep_ps(), std::memory_order_relaxed);
    wait(Wait::for_event, alarm_ps);
    event = front();
    const std::int64_t known_ps = block_->progress.is_granted() ? 0 : block_->grant.deadline_ps;
    if (lets_others_act(event, known_ps)) return nullptr;
    if (stops_at_timer(event, known_ps) || event == nullptr) return nullptr;
  }
  block_->clock.wait_to(event->time_ps);
  return event;
}

bool Client::stop_at_timer(const Event* event, std::int64_t known_ps) {
  const std::int64_t due_ps = timer_ps();
  if (due_ps > (event != nullptr ? event->time_ps : known_ps)) return false;
  block_->clock.wait_to(due_ps);
  return true;
}

// Call when a poll returns an event.
void Client::note_resumed() {
  Grant& grant = block_->grant;
  if (grant.least_events == 1 || block_->rings.event_tail != resumes_at_) return;
  grant.resumed_ps.store(block_->clock.now_ps(), std::memory_order_relaxed);
}

const Event* Client::test(bool spins, Time cost) {
  const std::int64_t now_ps = block_->clock.now_ps();
  Progress& progress = block_->progress;
  if (!spins) progress.begin_empty_polls(now_ps);
  const EmptyPollLimits& limits = header_->empty_poll_limits;
  const bool is_limit = spins && progress.polls_endlessly(limits, now_ps);
  // Another thread, or a handler, may end it then.
  const bool may_end = is_limit && std::min(next_other_ps(), timer_ps()) != never_ps;
  if (may_end) progress.restart_empty_polls(now_ps);
  // Tell the simulator about endless polling: if all other processes wait, it has nothing to report.
  const bool reports = is_limit && !may_end && progress.reports_polling(limits, now_ps);
  if (now_ps >= block_->clock.horizon_ps || reports) {
    wait(Wait::until, now_ps);
    if (const Event* event = visible()) return event;
  }
  charge(cost.ps());
  return may_end || (spins && cost == Time::zero()) ? skip_ahead() : nullptr;
}

// Tests that cost nothing would never reach what they wait for. Advances the clock to the next event, or to
// the horizon if no event is known before it.
const Event* Client::skip_ahead() {
  Clock& clock = block_->clock;
  const Event* event = front();
  std::int64_t until_ps = event != nullptr ? std::min(event->time_ps, clock.horizon_ps) : clock.horizon_ps;
  until_ps = std::min(until_ps, std::max(next_other_ps(), clock.now_ps()));
  until_ps = std::min(until_ps, std::max(timer_ps(), clock.now_ps()));
  // No event will come: no other process acts before this one.
  if (until_ps >= end_of_time_ps) return nullptr;
  clock.wait_to(until_ps);
  return visible();
}

}  // namespace apenet::ipc
