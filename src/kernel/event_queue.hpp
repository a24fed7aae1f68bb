// The event queue: what happens next, in one total order.
#pragma once

#include <cstdint>

#include "kernel/time.hpp"

namespace apenet {

class EventHandler;

// What an event is about; the second key of the order. At one instant resources are freed before they are
// asked for, and the network moves before the hosts look at it.
enum class EventKind : std::uint8_t { credit = 0, link = 1, router = 2, nic = 3, host = 4, process = 5, control = 6 };

// (time, kind, source, the source's own counter): a total order that does not depend on insertion, on
// addresses or on hash order (after Shadow, src/main/core/work/event.rs).
struct EventOrder {
  Time time;
  EventKind kind = EventKind::control;
  std::uint32_t source = 0;   // number of the component that scheduled it, unique within its kind
  std::uint64_t counter = 0;  // how many events that component had scheduled before
};

// A pending call of handler->handle(argument_a, argument_b) at order.time.
struct Event {
  EventOrder order;
  EventHandler* handler = nullptr;
  std::uint64_t argument_a = 0;
  std::uint64_t argument_b = 0;
};

class EventHandler {
 public:
  virtual void handle_event(const Event& event) = 0;

 protected:
  ~EventHandler() = default;
};

}  // namespace apenet
