// ReferenceEventQueue: the event queue as its definition has it, a sorted set. The oracle of EventQueue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>

#include "kernel/event.hpp"

namespace apenet {

class ReferenceEventQueue {
 public:
  [[nodiscard]] bool empty() const { return events_.empty(); }
  [[nodiscard]] std::size_t size() const { return events_.size(); }
  [[nodiscard]] std::uint64_t next_time_ps() const { return events_.begin()->time_ps; }

  void push(std::uint64_t time_ps, std::uint64_t order, EventHandler* handler, std::uint64_t argument_a,
            std::uint64_t argument_b) {
    events_.insert({time_ps, order, handler, argument_a, argument_b});
  }

  Event pop() {
    const Event event = *events_.begin();
    events_.erase(events_.begin());
    return event;
  }

 private:
  struct Earlier {
    bool operator()(const Event& left, const Event& right) const { return left.before(right); }
  };
  std::set<Event, Earlier> events_;
};

}  // namespace apenet
