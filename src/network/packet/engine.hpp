// PacketEngine: virtual cut-through with credits, one packet one object.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernel/large_array.hpp"
#include "kernel/simulation.hpp"
#include "network/description.hpp"
#include "network/faults/bit_errors.hpp"
#include "network/faults/halting_network.hpp"
#include "network/network_trace.hpp"
#include "network/packet/accuracy_envelope.hpp"
#include "network/packet/credit_returns.hpp"
#include "network/packet/layout.hpp"
#include "network/packet/records.hpp"
#include "network/packet/waiting_queues.hpp"
#include "network/packet/wormhole.hpp"
#include "network/routing/channel_classes.hpp"
#include "network/routing/injection_fifos.hpp"
#include "network/routing/routing.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

// The default engine; docs/models/network.md derives its equations. It keeps exact times for the header and
// the tail of a packet; flits do not exist. Everything is one kind of step, `grant`: the head packet of a
// queue leaves through an output into a queue, or an ejection buffer, that has room for all of it.
//
//   queue   an input buffer of a router, one per (port, virtual channel), or the injection FIFO of a card
//           channel. A queue dispatches one packet at a time, in order.
//   output  a link, an ejection port, or an injection port (card FIFOs to the router's local input). An
//   output
//           carries one packet at a time and picks among the waiting queues round robin, or the oldest.
//
// Reasons for its speed: an uncontended packet costs one event a hop. An output keeps the time at which it
// becomes free, and a queue the times at which room returns; an event for those is scheduled only when
// somebody waits. A network of 100 k nodes does not fit the cache, so the cost of a hop is the number of
// cache lines that it touches: records are a cache line or half of one, in plain arrays with 32-bit indices,
// and values that only contention needs are computed when they are needed.
//
// Invariants
//   - A queue with packets has either a `ready` event pending, or its head in the waiting set of one output.
//     The head may enter the waiting set before it is ready if the output is not free until after that.
//   - A packet of an adaptive routing waits for a step other than its escape only while the buffer behind
//   that
//     step has room: arbitration that finds none turns it to the escape, for good.
//   - An output with waiting queues has a `wake` event pending, or waits for room whose return is not yet
//   known
//     (Queue::needed_bytes), or for Network::consumed.
class PacketEngine final : public HaltingNetwork, private EventHandler {
 public:
  PacketEngine(Simulation& simulation, const Topology& topology, std::unique_ptr<const Routing> routing,
               const NetworkParameters& parameters);

  [[nodiscard]] std::uint32_t node_count() const override {
    return static_cast<std::uint32_t>(clients_.size());
  }
  void attach(NodeId node, NetworkClient& client) override;
  [[nodiscard]] std::int64_t injection_room(NodeId node, std::uint16_t channel) const override;
  std::int64_t inject(const Packet& packet, Time tail_time) override;
  void await_injection_room(NodeId node, std::uint16_t channel) override;
  void consumed(NodeId node, const Packet& packet) override;
  void prepare(NodeId node, std::uint16_t channel) const override;
  [[nodiscard]] std::uint32_t link_count() const override {
    return static_cast<std::uint32_t>(spec_.links.size());
  }
  [[nodiscard]] bool list_state(NodeId source, NodeId destination, StateList& list) override;
  [[nodiscard]] LinkStatistics link_statistics(std::uint32_t link) const override;
  [[nodiscard]] std::uint64_t link_crossings() const override;
  [[nodiscard]] std::vector<PortUse> port_use() const override;
  [[nodiscard]] std::vector<std::string> warnings() const override;
  void begin(Time zero) override;
  [[nodiscard]] FaultUse fault_use() const override;

  void allow_halts() override { spec_.keeps_numbers = true; }
  std::uint64_t halt() override;
  void restart(const Routing* routing, InjectionGate* gate) override;
  [[nodiscard]] std::uint64_t messages_under_way() const override;
  [[nodiscard]] bool is_empty() const override {
    return !state_.control.is_halted && messages_under_way() == 0;
  }
  void take_routes(const Routing* routing) override { restart(routing, state_.control.gate); }

  struct Spec {
    bool is_by_age = false;      // arbitration
    bool keeps_numbers = false;  // for halts and arbitration by age
    bool is_wormhole = false;
    bool takes_any_lane = false;
    std::uint8_t rail = 0;
    std::uint64_t order_of_rail = 0;  // in the counter of every event, above the step
    PacketLayout layout;
    std::uint32_t max_packet_wire_bytes = 0;
    Time router_latency;
    Time credit_latency;
    std::int64_t buffer_bytes = 0;
    std::int64_t injection_buffer_bytes = 0;
    std::int64_t ejection_buffer_bytes = 0;
    packet::Wormhole wormhole;
    std::vector<std::uint32_t> upstream;          // per (router, port): the output that feeds its queues
    std::vector<std::uint32_t> ejection_outputs;  // the first of each node; small enough for the cache
    EjectionPorts ejection_ports;
    std::vector<std::uint32_t> links;       // outputs that are links, for the statistics
    std::vector<std::string> router_names;  // a link's name is that of its router and of its port
    std::vector<std::string> port_names;
  };
  // The rest is in the states of the outputs, of WaitingQueues, CreditReturns and BitErrors.
  struct State {
    struct Control {
      const Routing* routing = nullptr;  // the one in force
      InjectionGate* gate = nullptr;
      bool is_halted = false;
      // Counts halts in its upper bits, as events do: an event of an earlier run is void.
      Numbering<std::uint64_t> run;
      Numbering<std::uint64_t> next_number;
    };
    Control control;
    LargeArray<packet::Queue> queues;
    LargeArray<Time> free_at;  // one for each output; apart from it, since an arriving packet reads it first
    LargeArray<packet::Flight> flights{1};
    std::uint32_t free_flight = packet::none;
    std::vector<std::uint64_t> numbers;  // per flight, in the order of injection; only with keeps_numbers
  };
  struct Counters {
    Time ports_only;  // in ports, of packets that crossed no link
  };

 private:
  using Flight = packet::Flight;
  using Output = packet::Output;
  using Queue = packet::Queue;
  using Stage = packet::Stage;
  using StageKind = packet::StageKind;
  static constexpr std::uint32_t none = packet::none;

  enum class Step : std::uint8_t { ready, wake, delivered, injection_freed };

  // Follows from the routing in force.
  struct Memo {
    const DimensionOrderRouting* dimension_order =
        nullptr;  // it, if it is this: asked without a virtual call
    // The same for the step from one router to the next, unless nodes have several ports.
    const DimensionOrderRouting* plain_order = nullptr;
    bool is_memoryless = false;
    bool is_adaptive = false;  // a gate may hold packets back, or a packet may be rerouted to another output
    std::uint32_t waypoint_count = 0;
    ChannelClasses classes{1, 1};
    std::uint64_t ring_channels = 0;  // the virtual channels of the class with bubbles, a bit for each
    bool finds_with_care = false;     // room: among several lanes, or in rings with bubbles
  };

  // The records that an event touches, or those that follow from it: the queue prefetches them.
  struct Touched {
    std::uint32_t queue;
    std::uint32_t flight;
    std::uint32_t output;
  };

  [[nodiscard]] static Spec spec_of(const Topology& topology, const NetworkParameters& parameters);
  void wire(const Topology& topology, const NetworkParameters& parameters);
  void list_way(NodeId source, NodeId destination, StateList& list);
  void wire_router(const Topology& topology, RouterId router);
  void wire_endpoint(const Topology& topology, NodeId node);
  void wire_injection(NodeId node, std::uint32_t number, PortRef port);

  void handle_event(const Event& event) override;
  void prepare(const Event& event, Ahead ahead) const override;
  inline void schedule(EventKind kind, std::uint32_t source, Time when, Step step, Touched touched);
  inline void schedule_ready(std::uint32_t queue_index, std::uint32_t flight_index, Time when);
  [[nodiscard]] Time pass_errors(std::uint32_t output_index, const Flight& flight);
  [[nodiscard]] std::vector<std::uint32_t> take_back();
  void reset_injection(std::uint32_t queue_index);
  void reset_routers();
  void check_injection_room() const;
  inline void request(std::uint32_t queue_index, std::uint32_t flight_index);
  void request_with_care(std::uint32_t queue_index, std::uint32_t flight_index);
  void ask(std::uint32_t queue_index, std::uint32_t flight_index);
  inline void choose_output(Flight& flight, std::uint32_t queue_index, const Output& from) const;
  void choose_among(Flight& flight, std::uint32_t queue_index, RouterId router) const;
  void choose_injection(Flight& flight) const;
  // As the topology numbers them: all ports towards a node are its attachment.
  [[nodiscard]] std::uint32_t input_port_of(std::uint32_t queue_index) const {
    const std::uint32_t port = queue_index / spec_.layout.virtual_channels % spec_.layout.ports;
    return std::min(port, spec_.layout.attachment_port);
  }
  [[nodiscard]] RouteSteps steps_of(const Flight& flight, std::uint32_t queue_index) const;
  void want(Flight& flight, std::uint32_t first_output, RouteStep step) const {
    want(flight, first_output, step, spec_.layout.card_channel(flight.channel));
  }
  void want(Flight& flight, std::uint32_t first_output, RouteStep step, std::uint32_t card_channel) const;
  void use_routing(const Routing& routing);
  void choose_by_room(std::uint32_t queue_index);
  std::vector<std::uint32_t> take_refused(std::uint32_t output_index, std::uint64_t refused);
  void turn_to_escape(std::uint32_t queue_index);
  void arbitrate(std::uint32_t output_index);
  // Calls visitor(queue_index) for the queues that wait for the output, in the order of arbitration, until it
  // returns true. Requires a waiting queue.
  template <typename Visitor>
  void visit_in_turn(std::uint32_t output_index, Visitor visitor);
  [[nodiscard]] const std::vector<std::uint32_t>& oldest_first(std::uint32_t output_index);
  [[gnu::noinline]] void await_turn(std::uint32_t queue_index, std::uint32_t flight_index, Time ready);
  void await_room(std::uint32_t output_index);
  inline void wake(std::uint32_t output_index, Time when, std::uint32_t queue_index);
  [[gnu::always_inline]] inline void grant(std::uint32_t queue_index, std::uint32_t flight_index,
                                           std::uint32_t output_index);
  [[gnu::always_inline]] inline void leave_queue(std::uint32_t queue_index, std::uint32_t head, Time tail_out,
                                                 std::uint32_t bytes, const Stage& stage);
  [[gnu::always_inline]] inline void enter_queue(std::uint32_t queue_index, std::uint32_t flight_index,
                                                 Time header_gap);
  void tell_entered(const Flight& flight);
  void deliver(std::uint32_t flight_index, std::uint32_t output_index);
  void tell_injection_freed(std::uint32_t queue_index);

  [[nodiscard]] bool has_room(const Output& output, std::uint32_t vc, std::uint32_t bytes);
  [[nodiscard]] inline bool finds_room(const Output& output, std::uint32_t queue_index, Flight& flight);
  [[nodiscard]] bool finds_lane(const Output& output, std::uint32_t queue_index, Flight& flight);
  [[nodiscard]] bool is_in_ring(const Output& output, std::uint32_t vc) const {
    return (memo_.ring_channels >> vc & 1U) != 0 && stages_[output.spec.stage].spec.kind == StageKind::link;
  }
  [[nodiscard]] std::uint32_t needed_bytes(const Output& output, std::uint32_t queue_index,
                                           const Flight& flight, std::uint32_t vc) const;
  [[nodiscard]] std::uint32_t returned_bytes(std::uint32_t queue_index, const Flight& flight) const;
  void await_room_of_each(std::uint32_t output_index);
  [[nodiscard]] std::uint64_t lanes_for(const Output& output, const Flight& flight) const;
  [[nodiscard]] inline Time credit_latency(const Queue& queue) const;
  void tell_room(std::uint32_t queue_index);
  [[nodiscard]] std::uint32_t new_flight();
  void trace(NetworkTrace what, Time until, std::uint32_t place, const Flight& flight) const;
  void trace_grant(std::uint32_t output_index, Time header_out, Time tail_out, const Flight& flight) const;
  void trace_output(std::uint32_t output_index, Time tail_out, const Flight& flight) const;

  static constexpr unsigned run_shift = 40;

  Simulation& simulation_;
  std::unique_ptr<const Routing> own_routing_;
  Spec spec_;
  State state_;
  Counters counters_;
  Memo memo_;
  LargeArray<Output> outputs_;
  packet::WaitingQueues waiting_;
  packet::CreditReturns credits_;
  packet::AccuracyEnvelope envelope_;
  std::unique_ptr<BitErrors> errors_;    // by output; only when a link has some
  std::vector<Stage> stages_;            // link classes, then ejection and injection
  std::vector<NetworkClient*> clients_;  // one per node
  std::vector<std::uint32_t> by_age_;    // result of oldest_first()
};

inline RouteSteps PacketEngine::steps_of(const Flight& flight, std::uint32_t queue_index) const {
  RouteQuery query{.router = spec_.layout.owner_of(queue_index), .destination = flight.destination};
  if (!memo_.is_memoryless) {
    query.input_port = input_port_of(queue_index);
    query.input_class = memo_.classes.class_of(queue_index % spec_.layout.virtual_channels);
    query.is_injected = flight.hops == 0;
    if (memo_.waypoint_count != 0)
      query.waypoint = waypoint_of(simulation_.seed(), flight.packet(), memo_.waypoint_count);
  }
  RouteSteps steps;
  state_.control.routing->route(query, steps);
  return steps;
}

inline void PacketEngine::want(Flight& flight, std::uint32_t first_output, RouteStep step,
                               std::uint32_t card_channel) const {
  flight.wanted_output = first_output + step.port;
  flight.wanted_vc = static_cast<std::uint8_t>(memo_.classes.channel(step.channel_class, card_channel));
}

// For an adaptive routing this is a guess, which serves to prefetch: the packet chooses again when it is
// ready.
inline void PacketEngine::choose_output(Flight& flight, std::uint32_t queue_index, const Output& from) const {
  if (memo_.plain_order == nullptr) [[unlikely]] {
    choose_among(flight, queue_index, from.spec.next_router);
    return;
  }
  // The node has one FIFO for each channel of its card, so Packet::channel is the card's channel.
  want(flight, from.spec.next_router * spec_.layout.ports,
       memo_.plain_order->step_from(from.spec.next_place, flight.destination), flight.channel);
}

// The arguments of an event are queue | flight << 32 and step | output << 8 | run << 40. All are filled for
// every step, so that prepare() needs no branch on the step. Every queue and every output is an event source
// with at most one pending event of each step; the step therefore serves as the counter of the order, below
// the number of the network where nodes have several. (Two wakes of an output at one time are equivalent.) At
// one instant the inputs of a router act in the order of their numbers.
inline void PacketEngine::schedule(EventKind kind, std::uint32_t source, Time when, Step step,
                                   Touched touched) {
  simulation_.schedule(
      PackedOrder::pack(kind, source, static_cast<std::uint64_t>(step) | spec_.order_of_rail), when, *this,
      touched.queue | std::uint64_t{touched.flight} << 32U,
      static_cast<std::uint64_t>(step) | std::uint64_t{touched.output} << 8U | state_.control.run);
}

// Injection FIFOs act before the routers, as the cards do that wait for them.
inline void PacketEngine::schedule_ready(std::uint32_t queue_index, std::uint32_t flight_index, Time when) {
  schedule(spec_.layout.is_injection(queue_index) ? EventKind::link : EventKind::router, queue_index, when,
           Step::ready, {queue_index, flight_index, state_.flights[flight_index].wanted_output});
}

// Only the earliest wake counts; arbitration asks again for what it still needs.
inline void PacketEngine::wake(std::uint32_t output_index, Time when, std::uint32_t queue_index) {
  Output& output = outputs_[output_index];
  if (when >= output.state.wake_at) return;
  output.state.wake_at = when;
  schedule(EventKind::link, output_index, when, Step::wake,
           {queue_index, state_.queues[queue_index].head, output_index});
}

template <typename Visitor>
inline void PacketEngine::visit_in_turn(std::uint32_t output_index, Visitor visitor) {
  if (!spec_.is_by_age) [[likely]] {
    waiting_.visit(outputs_[output_index], output_index, visitor);
    return;
  }
  for (const std::uint32_t queue_index : oldest_first(output_index)) {
    if (visitor(queue_index)) return;
  }
}

inline bool PacketEngine::has_room(const Output& output, std::uint32_t vc, std::uint32_t bytes) {
  Queue& queue = state_.queues[output.buffer(vc)];
  const auto needed = static_cast<std::int32_t>(bytes);
  if (queue.room_bytes >= needed) return true;
  credits_.settle(queue, credit_latency(queue), simulation_.now());
  return queue.room_bytes >= needed;
}

// The same for the head of a queue, in any lane that it may take; it then wants that lane.
inline bool PacketEngine::finds_room(const Output& output, std::uint32_t queue_index, Flight& flight) {
  if (memo_.finds_with_care) [[unlikely]]
    return finds_lane(output, queue_index, flight);
  return has_room(output, flight.wanted_vc, flight.wire_bytes);
}

// Latency of the last credit that a router's queue returned.
inline Time PacketEngine::credit_latency(const Queue& queue) const {
  if (spec_.is_wormhole) [[unlikely]]
    return spec_.credit_latency - spec_.wormhole.credit_lead(queue.returning_bytes);
  return spec_.credit_latency;
}

}  // namespace apenet
