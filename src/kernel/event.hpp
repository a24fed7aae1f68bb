// Event: one pending call of a handler, and its place in the total order.
#pragma once

#include <cstdint>

#include "kernel/state.hpp"
#include "kernel/time.hpp"

namespace apenet {

class EventHandler;

// The kind of an event; the second key of the order. At one instant resources are freed before they are
// requested, and the network moves before the hosts read it.
enum class EventKind : std::uint8_t {
  credit = 0,
  link = 1,
  router = 2,
  nic = 3,
  host = 4,
  process = 5,
  control = 6
};

// Everything of the order but the time in one word, so that two events compare by two words: 3 bits of kind,
// 25 of source (33 M components of a kind), 36 of counter (68 G events of a component). Simulation::schedule
// checks the limits.
struct PackedOrder {
  static constexpr int kind_bits = 3;
  static constexpr int source_bits = 25;
  static constexpr int counter_bits = 36;
  static constexpr std::uint64_t pack(EventKind kind, std::uint32_t source, std::uint64_t counter) {
    return static_cast<std::uint64_t>(kind) << (source_bits + counter_bits) |
           static_cast<std::uint64_t>(source) << counter_bits | counter;
  }
  static constexpr EventKind kind(std::uint64_t word) {
    return static_cast<EventKind>(word >> (source_bits + counter_bits));
  }
  static constexpr std::uint32_t source(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> counter_bits & ((std::uint64_t{1} << source_bits) - 1));
  }
  static constexpr std::uint64_t counter(std::uint64_t word) {
    return word & ((std::uint64_t{1} << counter_bits) - 1);
  }
};

// A pending call of handler->handle_event(event). Events are totally ordered by (time, kind, source, the
// source's own counter): an order that does not depend on insertion, on addresses or on hash order (as in
// the network simulator Shadow).
struct Event {
  std::uint64_t time_ps = 0;
  std::uint64_t order = 0;  // PackedOrder
  EventHandler* handler = nullptr;
  std::uint64_t argument_a = 0;
  std::uint64_t argument_b = 0;

  [[nodiscard]] Time time() const { return Time::from_ps(static_cast<std::int64_t>(time_ps)); }
  [[nodiscard]] EventKind kind() const { return PackedOrder::kind(order); }
  [[nodiscard]] std::uint32_t source() const { return PackedOrder::source(order); }
  [[nodiscard]] std::uint64_t counter() const { return PackedOrder::counter(order); }

  [[nodiscard]] bool before(const Event& other) const {
    __extension__ using Wide = unsigned __int128;  // one comparison without a branch between the two words
    return (static_cast<Wide>(time_ps) << 64 | order) <
           (static_cast<Wide>(other.time_ps) << 64 | other.order);
  }
  // The source's counter only orders events that are pending.
  friend bool is_same_state(const Event& left, Moment left_at, const Event& right, Moment right_at) {
    return left.time() - left_at.now == right.time() - right_at.now && left.kind() == right.kind() &&
           left.source() == right.source() && left.handler == right.handler &&
           left.argument_a == right.argument_a && left.argument_b == right.argument_b;
  }
};

class EventHandler {
 public:
  virtual void handle_event(const Event& event) = 0;
  // The event is due within the next few dozen: a component whose state does not fit the cache asks for it
  // here (__builtin_prefetch). First for what the event names, then, a few events before its turn, for what
  // that names in turn. It changes nothing, and is not promised for every event.
  enum class Ahead : std::uint8_t { far, close };
  virtual void prepare(const Event& event, Ahead ahead) const;

 protected:
  ~EventHandler() = default;
};

}  // namespace apenet
