#include "kernel/event_queue.hpp"

#include <bit>

#include "kernel/check.hpp"

namespace apenet {

namespace {

// std::push_heap puts the largest in front; the queue needs the earliest.
struct Later {
  bool operator()(const Event& left, const Event& right) const { return right.before(left); }
};

}  // namespace

// Not in the header: the compiler would compare each handler's function with it before every call.
void EventHandler::prepare(const Event& /*event*/, Ahead /*ahead*/) const {}

// Requires an event in the wheel.
EventQueue::Place EventQueue::first_occupied() const {
  const Place place = wheel_.first_place();
  APENET_CHECK(place.level < TimingWheel::level_count, "event queue of size %zu has an empty wheel", size_);
  return place;
}

std::uint64_t EventQueue::wheel_next_time_ps() const {
  return wheel_.slot_at(first_occupied()).earliest_ps;
}

// Appends the slot's events to near_; false if the slot must be spread first.
bool EventQueue::take_near(Place place) {
  const auto count = static_cast<std::size_t>(wheel_.slot_at(place).count);
  if (place.level > 0 && count > batch_always && !pays_whole(place)) return false;
  if (!sort_.sort(wheel_, place, extend_near(count))) {
    near_count_ -= count;
    last_large_[static_cast<std::size_t>(place.level)].spread = spread_alike;
    return false;
  }
  wheel_.enter(place);
  const auto shift = static_cast<unsigned>(place.level) * TimingWheel::digit_bits;
  near_end_ps_ = wheel_.base_ps() + (std::uint64_t{1} << shift);
  near_level_ = place.level;
  handled_ += count;
  wheel_.release(place);
  return true;
}

// Estimates from the last such slot of the level whether few events will come late: events handled since then
// that were not in that slot had been pushed into its time after it was reached.
bool EventQueue::pays_whole(Place place) {
  const std::uint64_t count = wheel_.slot_at(place).count;
  LastLarge& last = last_large_[static_cast<std::size_t>(place.level)];
  const std::uint64_t later = handled_ - last.handled - last.count;
  const bool pays = count <= batch_limit && later * late_share <= last.count && last.spread == 0;
  last = {handled_, count, last.spread - static_cast<std::uint32_t>(last.spread > 0)};
  return pays;
}

// Sorts batches until near_ holds as many coming events as prepare_coming needs, at least one. Where only
// late events precede the wheel, the first of them goes to near_.
void EventQueue::advance() {
  if (size_ <= few_again) {
    gather_few();
    return;
  }
  const std::size_t ahead = size_ > prepare_above ? prepare_handler : 0;
  if (near_cursor_ >= near_kept) drop_popped();
  if (near_cursor_ == near_count_ && !late_.empty()) {
    *extend_near(1) = take_late();
  } else {
    std::size_t in_wheel = size_ - (near_count_ - near_cursor_) - late_.size();
    while (near_cursor_ + ahead >= near_count_ && in_wheel > 0) {
      const std::size_t before = near_count_;
      refill();
      in_wheel -= near_count_ - before;
    }
  }
  advance_at_ = near_count_ - std::min(near_count_, ahead);
}

void EventQueue::drop_popped() {
  const auto first = near_.begin() + static_cast<std::ptrdiff_t>(near_cursor_);
  std::copy(first, near_.begin() + static_cast<std::ptrdiff_t>(near_count_), near_.begin());
  near_count_ -= near_cursor_;
  near_cursor_ = 0;
}

Event* EventQueue::extend_near(std::size_t more) {
  if (near_count_ + more > near_.size()) near_.resize(std::max(near_count_ + more, 2 * near_.size()));
  near_count_ += more;
  return near_.data() + (near_count_ - more);
}

// Moves the next batch from the wheel to near_.
void EventQueue::refill() {
  Place place = first_occupied();
  const std::size_t before = near_count_;
  while (!take_near(place)) {
    wheel_.spread(place);
    place = wheel_.first_place();
  }
  // Neighbouring slots with few events are taken together: one refill for several pops.
  const int level = place.level;
  for (int digit = wheel_.first_digit(level); digit < TimingWheel::slots_per_level;
       digit = wheel_.first_digit(level)) {
    if (near_count_ - before + wheel_.slot_at({level, digit}).count > batch_target) break;
    take_near({level, digit});
  }
}

EventQueue::State EventQueue::state() const {
  State state{.pending = {}, .last_popped_ps = {last_popped_ps_}};
  const auto take = [&](const Event& event) { state.pending.push_back(event); };
  std::for_each(near_.data() + near_cursor_, near_.data() + near_count_, take);
  std::for_each(late_.begin(), late_.end(), take);
  for (int level = 0; level < TimingWheel::level_count; ++level) {
    for (int digit = 0; digit < TimingWheel::slots_per_level; ++digit) wheel_.visit({level, digit}, take);
  }
  std::sort(state.pending.begin(), state.pending.end(),
            [](const Event& left, const Event& right) { return left.before(right); });
  return state;
}

void EventQueue::restore(const State& state) {
  for (Place place = wheel_.first_place(); place.level < TimingWheel::level_count;
       place = wheel_.first_place()) {
    wheel_.release(place);
  }
  empty_near();
  size_ = 0;
  last_popped_ps_ = state.last_popped_ps;
  for (const Event& event : state.pending)
    push(event.time_ps, event.order, event.handler, event.argument_a, event.argument_b);
}

// Drops the events that are not in the wheel.
void EventQueue::empty_near() {
  late_.clear();
  late_ps_ = none_late_ps;
  near_cursor_ = 0;
  near_count_ = 0;
  near_end_ps_ = endless_ps;
  advance_at_ = never;
}

// The rare cases of push: a late event, or a slot whose last chunk is full.
void EventQueue::push_apart(std::uint64_t time_ps, std::uint64_t order, EventHandler* handler,
                            std::uint64_t argument_a, std::uint64_t argument_b) {
  const Event event{time_ps, order, handler, argument_a, argument_b};
  if (near_end_ps_ == endless_ps) {
    push_few(event);
  } else if (time_ps < near_end_ps_) {
    push_late(event);
  } else {
    wheel_.place(time_ps) = event;
  }
}

// Most events belong near the end. The event that is being handled lies before the cursor and stays there.
void EventQueue::push_few(const Event& event) {
  if (near_count_ == near_.size()) drop_popped();
  const std::size_t cursor = near_cursor_;
  std::size_t at = near_count_++;
  for (; at > cursor && event.before(near_[at - 1]); --at) near_[at] = near_[at - 1];
  near_[at] = event;
  if (size_ > few_limit) narrow_near();
}

// Puts all pending events into near_. Requires no more than few_again.
void EventQueue::gather_few() {
  std::array<Event, few_again> events;
  std::size_t count = 0;
  const auto take = [&](const Event& event) { events[count++] = event; };
  std::for_each(near_.data() + near_cursor_, near_.data() + near_count_, take);
  std::for_each(late_.begin(), late_.end(), take);
  for (TimingWheel::Place place = wheel_.first_place(); place.level < TimingWheel::level_count;
       place = wheel_.first_place()) {
    wheel_.visit(place, take);
    wheel_.release(place);
  }
  empty_near();
  for (std::size_t i = 0; i < count; ++i) push_few(events[i]);
}

void EventQueue::push_late(const Event& event) {
  ++handled_;
  late_.push_back(event);
  std::push_heap(late_.begin(), late_.end(), Later{});
  late_ps_ = late_.front().time_ps;
  if (late_.size() > late_limit && near_level_ > 0) narrow_near();
}

// Requires a late event.
Event EventQueue::take_late() {
  std::pop_heap(late_.begin(), late_.end(), Later{});
  const Event event = late_.back();
  late_.pop_back();
  late_ps_ = late_.empty() ? none_late_ps : late_.front().time_ps;
  return event;
}

const Event& EventQueue::pop_late() {
  popped_late_ = take_late();
  last_popped_ps_ = popped_late_.time_ps;
  return popped_late_;
}

// near_ spans so long a time that new events keep falling into it, for instance because of a lone timer far
// ahead. All of it goes back into the wheel, whose base time goes back to the last event popped; the next
// refill then takes a finer slot. Events of the levels below the highest digit that changes are placed anew.
void EventQueue::narrow_near() {
  const std::uint64_t difference = last_popped_ps_ ^ wheel_.base_ps();
  const int highest = (std::bit_width(difference | 1U) - 1) / static_cast<int>(TimingWheel::digit_bits);
  std::vector<Event> events(near_.data() + near_cursor_, near_.data() + near_count_);
  events.insert(events.end(), late_.begin(), late_.end());
  for (int level = 0; level < highest; ++level) {
    for (int digit = wheel_.first_digit(level); digit < TimingWheel::slots_per_level;
         digit = wheel_.first_digit(level)) {
      wheel_.visit({level, digit}, [&events](const Event& event) { events.push_back(event); });
      wheel_.release({level, digit});
    }
  }
  wheel_.set_base(last_popped_ps_);
  near_end_ps_ = 0;
  near_count_ = near_cursor_;  // keeps the event that is being handled
  advance_at_ = 0;
  late_.clear();
  late_ps_ = none_late_ps;
  for (const Event& event : events) wheel_.place(event.time_ps) = event;
}

}  // namespace apenet
