// Threads that wait in a library: they poll, and go on when another one of them takes an event.
#include <algorithm>

#include "runtime/ipc/thread_order_parts.hpp"

namespace apenet::ipc {
namespace {

// A thread that waits in a library goes on behind so many calls of others at most: the receive that has ended
// by what they took, and what they send then.
constexpr std::uint32_t most_times_behind = 4;

}  // namespace

void ThreadOrder::note_empty_poll(OrderedThread& own, std::int64_t timer_ps) {
  Guard guard(*this);
  own.timer_ps = timer_ps;
  own.yields_before_poll = OrderedThread::most_yields_before_poll;
  own.has_taken = false;
  const std::uint64_t now = progress();
  if (own.saw_nothing == now) own.checked = now;
  own.polled_before = own.saw_nothing == now ? own.polled : OrderedThread::no_poll;
  own.saw_nothing = now;
  own.polled = ++table_->tickets;
}

// Whether it helps nobody to let the other thread act: all that has happened since the last poll of `own` is
// an empty poll of the other one, or it was blocked then and still is.
bool ThreadOrder::has_polled_since(const OrderedThread& other, const OrderedThread& own) const {
  const std::uint64_t now = progress();
  if (own.saw_nothing != now || own.polled_before == OrderedThread::no_poll) return false;
  const bool is_blocked = !may_act(other);
  if (is_blocked && other.ticket < own.polled_before) return true;
  return other.saw_nothing == now && other.polled > own.polled_before &&
         (is_blocked || acts_at(other) == other.key);
}

// Whether both threads wait in a library, and have looked at its memory since anything was posted or taken,
// the other one also since the call of `own` has begun: the next poll of either finds nothing.
bool ThreadOrder::is_up_to_date(const OrderedThread& other, const OrderedThread& own) const {
  const std::uint64_t now = progress();
  if (own.lives_in_call || own.checked != now || other.checked != now || other.saw_nothing != now)
    return false;
  return other.acts == ThreadActs::at_gate && other.call_depth > 0 && other.polled > own.call_ticket;
}

void ThreadOrder::begin_polls(OrderedThread& own, bool polls_under_locks) {
  const Guard guard(*this);
  own.checked = 0;
  own.yields_before_poll = polls_under_locks ? 0 : OrderedThread::most_yields_before_poll;
  own.has_taken = false;
  own.call_ticket = polls_under_locks ? ++table_->tickets : OrderedThread::no_poll;
}

bool ThreadOrder::keeps_turn(OrderedThread& own) {
  const Guard guard(*this);
  if (guard.is_nested() || !is_between_actions_of_call(own) || !table_->has_started) return false;
  if (own.call_ticket == OrderedThread::no_poll) return false;
  const std::uint64_t now = progress();
  if (own.saw_nothing == now) own.checked = now;
  if (own.yields_before_poll < OrderedThread::most_yields_before_poll && !own.owes_way && !own.gives_way) {
    ++own.yields_before_poll;
    return true;
  }
  if (own.checked != now || own.polled == own.kept_turn_at) return false;
  bool is_any_before = false;
  for_each([&](const OrderedThread& other) {
    const bool is_before = &other != &own && may_act(other) && other.settled_key.clock_ps <= own.key.clock_ps;
    is_any_before = is_any_before || (is_before && !is_up_to_date(other, own));
  });
  if (is_any_before) return false;
  own.kept_turn_at = own.polled;
  own.gives_way = false;
  own.owes_way = false;
  return true;
}

bool ThreadOrder::takes_second(OrderedThread& own) {
  if (!own.has_taken || own.yields_before_poll == 0) return false;
  const Guard guard(*this);
  bool is_any_due = false;
  for_each([&](const OrderedThread& other) {
    is_any_due = is_any_due || (&other != &own && other.acts == ThreadActs::at_gate && other.call_depth > 0);
  });
  own.has_taken = false;
  return is_any_due;
}

void ThreadOrder::queue_pollers(const OrderedThread& own, std::int64_t clock_ps) {
  const Guard guard(*this);
  if (guard.is_nested() || !is_acting(own) || own.call_ticket == OrderedThread::no_poll) return;
  for_each([&](OrderedThread& other) {
    const ActionKey behind{.clock_ps = std::max(clock_ps, own.key.clock_ps),
                           .round = most_times_behind,
                           .number = other.key.number};
    const bool waits = other.acts == ThreadActs::at_gate && other.call_depth > 0;
    if (!waits || other.key >= behind || other.times_behind == most_times_behind) return;
    if (other.key.clock_ps < behind.clock_ps) {
      other.round_before = 0;
    } else if (other.times_behind == 0) {
      other.round_before = other.key.round;
    }
    ++other.times_behind;
    other.key = behind;
    other.settled_key = behind;
  });
}

std::int64_t ThreadOrder::next_other_ps(const OrderedThread& own) {
  Guard guard(*this);
  std::int64_t first_ps = INT64_MAX;
  for_each([&](const OrderedThread& other) {
    if (&other == &own || !may_act(other) || is_up_to_date(other, own)) return;
    if (!has_polled_since(other, own)) {
      first_ps = std::min(first_ps, acts_at(other).clock_ps);
    } else if (other.process != own.process) {  // only that one fires its timers
      first_ps = std::min(first_ps, other.timer_ps);
    }
  });
  return first_ps;
}

bool ThreadOrder::must_yield(const OrderedThread& own) {
  Guard guard(*this);
  bool yields = false;
  for_each([&](const OrderedThread& other) {
    if (other.acts == ThreadActs::blocked && other.owner == place_of(&own) && !has_polled_since(other, own))
      yields = true;
  });
  return yields;
}

}  // namespace apenet::ipc
