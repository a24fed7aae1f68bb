// PacketEngine: virtual cut-through with credits, one packet one object.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "kernel/large_array.hpp"
#include "kernel/simulation.hpp"
#include "network/network.hpp"
#include "network/network_trace.hpp"
#include "network/packet/bit_errors.hpp"
#include "network/packet/serialisation.hpp"
#include "network/parameters.hpp"
#include "network/routing/routing.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

// Asked before a packet leaves its card's FIFO for the network. Without a yes it stays there, and those
// behind it, until the next restart.
class InjectionGate {
 public:
  virtual bool admits(const Packet& packet) = 0;

 protected:
  ~InjectionGate() = default;
};

// The default engine; docs/models/network.md derives its equations. Header and tail of a packet have exact
// times; flits do not exist. Everything is one kind of step, `grant`: the head packet of a queue leaves
// through an output into a queue (or ejection buffer) that has room for all of it.
//
//   queue   an input buffer of a router, per (port, virtual channel), or an injection FIFO of a card channel.
//           A queue hands over one packet at a time, in order.
//   output  a link, an ejection port, or an injection port: card FIFOs to the router's local input. It
//   carries one
//           packet at a time and picks among the waiting queues round robin.
//
// An uncontended packet costs one event a hop: outputs keep the time at which they become free and queues the
// times at which space returns; an event for those is scheduled only when somebody waits. Plain arrays and
// 32-bit indices, and records of a cache line or half of one, because a network of 100 k nodes lives in
// memory, not in the cache: what counts is how many lines a hop touches. What is needed under contention
// alone is computed, or found in the packet.
//
// Invariants: a queue with packets has exactly one of: a `ready` event pending, or its head in the waiting
// set of one output; that may be before it is ready, if the output is not free until after that. A flight of
// an adaptive routing may wait for a step that is not its escape only while the buffer behind that step has
// room: arbitration that finds none turns it to the escape, for good. An output with waiting queues has a
// `wake` event pending, or waits for room whose return is not yet known (Queue::needed_bytes), or for
// Network::consumed.
class PacketEngine final : public Network, private EventHandler {
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
    return static_cast<std::uint32_t>(links_.size());
  }
  [[nodiscard]] LinkStatistics link_statistics(std::uint32_t link) const override;
  [[nodiscard]] std::uint64_t link_crossings() const override;
  [[nodiscard]] std::vector<std::string> warnings() const override;
  void begin(Time zero) override;
  [[nodiscard]] FaultUse fault_use() const override;

  // For reconfiguration (docs/models/faults.md). Before the first packet: halt() may be called from now on.
  void allow_halts() { keeps_numbers_ = true; }
  // Stops the network. Whatever has not reached its ejection buffer with its tail is back in the FIFO of its
  // card, in the order of injection; routers are as after a reset. Packets injected from now on wait.
  // Returns how many packets were taken back.
  std::uint64_t halt();
  // Goes on, with this routing (nullptr: the machine's own) and gate (nullptr: none), which outlive their
  // use.
  void restart(const Routing* routing, InjectionGate* gate);
  // That have packets in the network or in a card's FIFO.
  [[nodiscard]] std::uint64_t messages_under_way() const;

 private:
  // No flight, or no return: the first record of each stands in, so that what is fetched early needs no mask.
  static constexpr std::uint32_t none = 0;
  static constexpr std::uint32_t told_bytes = std::numeric_limits<std::uint32_t>::max();

  enum class Step : std::uint8_t { ready, wake, delivered, injection_freed };
  enum class StageKind : std::uint8_t { link, ejection, injection };

  // A packet on its way: the fields of Packet without its padding, so that all of it is one cache line.
  struct alignas(64) Flight {
    Time tail_in;  // when the tail is in the queue the packet is in, or in the ejection buffer
    Time ready;    // when the header may leave that queue; at ejection: when it arrived
    std::uint64_t message = 0;
    NodeId source = 0;
    NodeId destination = 0;
    std::uint32_t payload_bytes = 0;
    std::uint32_t wire_bytes = 0;
    std::uint32_t sequence = 0;
    std::uint32_t next = none;           // behind it in the queue, or the next free record
    std::uint32_t wanted_output = none;  // of the router it is at or travels to
    std::uint32_t order = 0;
    std::uint16_t channel = 0;
    std::uint16_t hops = 0;
    std::uint8_t wanted_vc = 0;  // behind that output
    bool last = false;
    bool may_turn = false;   // adaptive, and not waiting for the escape
    bool is_resent = false;  // taken back: its place in the card's FIFO is the next packet's already

    [[nodiscard]] Packet packet() const {
      return {source, destination, payload_bytes, wire_bytes, message, sequence, channel, hops, last, order};
    }
  };

  static_assert(sizeof(Flight) == 64);

  // Credits come back in the order in which they set out, since a queue hands over one packet at a time. That
  // of the packet handed over last is back at free_at and the way of a credit; the others before that.
  struct alignas(32) Queue {
    Time free_at;                          // the tail of the packet handed over last has left
    std::int32_t room_bytes = 0;           // as the upstream output (or the card) knows it
    std::uint32_t returning_bytes = 0;     // the last credit on its way; 0: none is
    std::uint32_t earlier_returns = none;  // the last of the ring of those before it
    std::uint32_t head = none;             // flights
    std::uint32_t tail = none;
    std::uint32_t needed_bytes = 0;  // what the upstream output waits for; 0: nothing. For a card: any room,
                                     // 1, or told_bytes when injection_freed is under way
  };

  struct alignas(64) Output {
    Time wake_at = Time::never();  // of the event that counts; later ones are void
    Time busy;
    std::uint64_t packets = 0;
    std::uint64_t wire_bytes = 0;
    std::uint64_t waiting_mask = 0;  // the first 64 queues that can wait; the others: waiting_more_
    std::uint32_t first_buffer = 0;  // queues behind it, one per virtual channel; or the ejection buffer
    std::uint32_t first_queue = 0;   // of those that can ask for it
    std::uint32_t next_router = 0;   // behind it; of an ejection port: its own
    std::uint32_t next_outputs = 0;  // the first of that router
    std::uint16_t waiting = 0;       // queues
    std::uint16_t last_granted = 0;  // number of the queue among them
    std::uint8_t stage = 0;          // index into stages_
    std::uint8_t vc_mask = 0;        // of the buffers behind it: 0 where there is one

    [[nodiscard]] std::uint32_t buffer(std::uint32_t vc) const { return first_buffer + (vc & vc_mask); }
  };

  static_assert(sizeof(Output) == 64);

  // What the outputs of one kind and dimension share.
  struct Stage {
    StageKind kind = StageKind::link;
    bool has_errors = false;
    Serialisation serialisation;
    Time latency;
    Time header_latency;  // the same and the next router's, to where the header may leave again
    Time tail_latency;    // of a tail through the router
    double bit_error_rate = 0;
    Time credit_latency;  // of the queues that ask for it
    // Of the packet before: mostly the next is as long, and needs no division.
    std::uint32_t last_bytes = 0;
    Time last_duration = Time::zero();
  };

  struct CreditReturn {
    Time time;
    std::uint32_t bytes = 0;
    std::uint32_t next = none;  // of the last one: the first
  };

  // By an event, or by what it leads to.
  struct Touched {
    std::uint32_t queue;
    std::uint32_t flight;
    std::uint32_t output;
  };

  void wire(const Topology& topology, const NetworkParameters& parameters);
  void wire_router(const Topology& topology, RouterId router);
  void wire_endpoint(const Topology& topology, NodeId node);

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
  [[nodiscard]] RouteSteps steps_of(const Flight& flight, std::uint32_t queue_index) const;
  void want(Flight& flight, std::uint32_t first_output, RouteStep step) const;
  void use_routing(const Routing& routing);
  void choose_by_room(std::uint32_t queue_index);
  std::vector<std::uint32_t> take_refused(std::uint32_t output_index, std::uint64_t refused);
  void turn_to_escape(std::uint32_t queue_index);
  void arbitrate(std::uint32_t output_index);
  [[gnu::noinline]] void await_turn(std::uint32_t queue_index, std::uint32_t flight_index, Time ready);
  inline void start_waiting(std::uint32_t output_index, std::uint32_t queue_index);
  inline void stop_waiting(std::uint32_t output_index, std::uint32_t number);
  void await_room(std::uint32_t output_index);
  inline void wake(std::uint32_t output_index, Time when, std::uint32_t queue_index);
  [[gnu::always_inline]] inline void grant(std::uint32_t queue_index, std::uint32_t flight_index,
                                           std::uint32_t output_index);
  [[gnu::always_inline]] inline void leave_queue(std::uint32_t queue_index, std::uint32_t head, Time tail_out,
                                                 std::uint32_t bytes, Time credit_latency);
  [[gnu::always_inline]] inline void enter_queue(std::uint32_t queue_index, std::uint32_t flight_index);
  void tell_entered(const Flight& flight);
  void deliver(std::uint32_t flight_index);
  void tell_injection_freed(std::uint32_t queue_index);

  [[nodiscard]] bool has_room(const Output& output, std::uint32_t vc, std::uint32_t bytes);
  [[nodiscard]] Time room_time(const Queue& queue, std::uint32_t bytes) const;
  void settle_returns(Queue& queue, Time credit_latency);
  void settle_earlier(Queue& queue);
  void add_return(Queue& queue, Time time);
  void tell_room(std::uint32_t queue_index);
  [[nodiscard]] std::uint32_t new_flight();
  [[nodiscard]] std::uint32_t next_waiting(std::uint32_t output_index);
  template <typename Visit>
  void visit_waiting(std::uint32_t output_index, Visit visit);
  [[nodiscard]] std::uint64_t& waiting_word(std::uint32_t output_index, std::uint32_t word) {
    return word == 0 ? outputs_[output_index].waiting_mask
                     : waiting_more_[std::size_t{output_index} * (waiting_words_ - 1) + word - 1];
  }
  [[nodiscard]] bool is_injection(std::uint32_t queue_index) const {
    return queue_index >= first_injection_queue_;
  }
  [[nodiscard]] std::uint32_t first_queue(std::uint32_t owner) const {
    return owner < router_count_ ? owner * ports_ * virtual_channels_
                                 : first_injection_queue_ + (owner - router_count_) * card_channels_;
  }
  [[nodiscard]] std::uint32_t owner_of(std::uint32_t queue_index) const {
    return is_injection(queue_index) ? router_count_ + (queue_index - first_injection_queue_) / card_channels_
                                     : queue_index / (ports_ * virtual_channels_);
  }
  void trace(NetworkTrace what, Time until, std::uint32_t place, const Flight& flight) const;
  void trace_grant(std::uint32_t output_index, Time tail_out, const Flight& flight) const;

  Simulation& simulation_;
  std::unique_ptr<const Routing> own_routing_;
  const Routing* routing_;                        // the one in force
  const DimensionOrderRouting* dimension_order_;  // the same, if it is this: asked without a virtual call
  bool is_memoryless_;                            // that one
  bool is_halted_ = false;
  bool keeps_numbers_ = false;
  bool takes_care_ = false;  // a gate may hold packets back, or a packet may turn to another output
  static constexpr unsigned run_shift = 40;
  std::uint64_t run_ = 0;  // counts halts, from there on as in an event: those of earlier runs are void
  InjectionGate* gate_ = nullptr;
  std::uint32_t router_count_;
  std::uint32_t ports_;             // per router
  std::uint32_t virtual_channels_;  // per link
  std::uint32_t lanes_;             // virtual channels per class
  std::uint32_t card_channels_;
  std::uint32_t max_packet_wire_bytes_;
  double trusted_use_;  // of the busiest output, up to which latencies are within 10 % of the flit engine's
  double
      flit_slowdown_;  // of the flit engine's links: where it is not 1, that engine simulates another machine
  Time router_latency_;
  Time credit_latency_;
  std::int64_t buffer_bytes_;
  std::int64_t injection_buffer_bytes_;
  std::int64_t ejection_buffer_bytes_;
  std::uint32_t first_injection_queue_;
  std::uint32_t first_ejection_buffer_;
  std::uint32_t waiting_words_;  // per output, for a bit per queue
  // (router, port, virtual channel), then (node, card channel), then each node's ejection buffer, of which
  // only the room counts.
  LargeArray<Queue> queues_;
  LargeArray<Output> outputs_;  // (router, port), then the injection port of each node
  LargeArray<Time> free_at_;    // of each output: apart, because a packet that comes asks for it first
  std::vector<std::uint64_t> waiting_more_;
  std::vector<std::uint32_t> upstream_;          // per (router, port): the output that feeds its queues
  std::vector<Stage> stages_;                    // link classes, then ejection and injection
  std::vector<Time> idle_between_packets_;       // of each stage, in the flit engine
  std::vector<NetworkClient*> clients_;          // of each node
  std::vector<std::uint32_t> ejection_outputs_;  // of each node: apart, and so in the cache
  LargeArray<Flight> flights_{1};
  std::uint32_t free_flight_ = none;
  std::vector<std::uint64_t> numbers_;  // per flight, in the order of injection; only with allow_halts()
  std::uint64_t next_number_ = 0;
  std::vector<CreditReturn> returns_{1};
  std::uint32_t free_return_ = none;
  std::vector<std::uint32_t> links_;       // outputs that are links, for the statistics
  std::vector<std::string> router_names_;  // a link's name is that of its router and of its port
  std::vector<std::string> port_names_;
  std::unique_ptr<BitErrors> errors_;  // by output; only when a link has some
};

inline RouteSteps PacketEngine::steps_of(const Flight& flight, std::uint32_t queue_index) const {
  RouteQuery query{.router = owner_of(queue_index), .destination = flight.destination};
  if (!is_memoryless_) {
    query.input_port = queue_index / virtual_channels_ % ports_;
    query.input_class = queue_index % virtual_channels_ / lanes_;
    query.is_injected = flight.hops == 0;
  }
  RouteSteps steps;
  routing_->route(query, steps);
  return steps;
}

inline void PacketEngine::want(Flight& flight, std::uint32_t first_output, RouteStep step) const {
  const std::uint32_t lane = lanes_ == 1 ? 0 : flight.channel % lanes_;
  flight.wanted_output = first_output + step.port;
  flight.wanted_vc = static_cast<std::uint8_t>(step.channel_class * lanes_ + lane);
}

// A packet of an adaptive routing chooses again when it is ready: until then the first step is only a guess
// at what it will touch.
inline void PacketEngine::choose_output(Flight& flight, std::uint32_t queue_index, const Output& from) const {
  if (dimension_order_ == nullptr) [[unlikely]] {
    choose_among(flight, queue_index, from.next_router);
    return;
  }
  want(flight, from.next_outputs, dimension_order_->step(from.next_router, flight.destination));
}

inline void PacketEngine::start_waiting(std::uint32_t output_index, std::uint32_t queue_index) {
  Output& output = outputs_[output_index];
  const std::uint32_t number = queue_index - output.first_queue;
  waiting_word(output_index, number / 64) |= std::uint64_t{1} << number % 64;
  ++output.waiting;
}

inline void PacketEngine::stop_waiting(std::uint32_t output_index, std::uint32_t number) {
  waiting_word(output_index, number / 64) &= ~(std::uint64_t{1} << number % 64);
  --outputs_[output_index].waiting;
}

// An event's arguments: queue | flight << 32, and step | output << 8 | run << 40, what an event does not need
// included: it is there to be fetched early, without a branch on the step. Every queue and every output is a
// source of its own, with one event of a step at a time: the step serves as its counter. (Two wakes of an
// output at the same time are the same.) So at one instant the inputs of a router come in the order of their
// numbers.
inline void PacketEngine::schedule(EventKind kind, std::uint32_t source, Time when, Step step,
                                   Touched touched) {
  simulation_.schedule(PackedOrder::pack(kind, source, static_cast<std::uint64_t>(step)), when, *this,
                       touched.queue | std::uint64_t{touched.flight} << 32U,
                       static_cast<std::uint64_t>(step) | std::uint64_t{touched.output} << 8U | run_);
}

// Injection FIFOs go on when a tail has left, like the card that waits for that: before the routers.
inline void PacketEngine::schedule_ready(std::uint32_t queue_index, std::uint32_t flight_index, Time when) {
  schedule(is_injection(queue_index) ? EventKind::link : EventKind::router, queue_index, when, Step::ready,
           {queue_index, flight_index, flights_[flight_index].wanted_output});
}

// The earliest of the wakes asked for is the one that counts: arbitration asks again for what it still needs.
inline void PacketEngine::wake(std::uint32_t output_index, Time when, std::uint32_t queue_index) {
  Output& output = outputs_[output_index];
  if (when >= output.wake_at) return;
  output.wake_at = when;
  schedule(EventKind::link, output_index, when, Step::wake,
           {queue_index, queues_[queue_index].head, output_index});
}

// Credits that have come back are counted when somebody finds too little room; the last one also when the
// next sets out.
inline void PacketEngine::settle_returns(Queue& queue, Time credit_latency) {
  if (queue.earlier_returns != none) settle_earlier(queue);
  const bool is_back = queue.earlier_returns == none && queue.free_at + credit_latency <= simulation_.now();
  const std::uint32_t back_bytes = is_back ? queue.returning_bytes : 0;
  queue.room_bytes += static_cast<std::int32_t>(back_bytes);
  queue.returning_bytes -= back_bytes;
}

inline bool PacketEngine::has_room(const Output& output, std::uint32_t vc, std::uint32_t bytes) {
  Queue& queue = queues_[output.buffer(vc)];
  const auto needed = static_cast<std::int32_t>(bytes);
  if (queue.room_bytes >= needed) return true;
  settle_returns(queue, credit_latency_);
  return queue.room_bytes >= needed;
}

// Calls visit(queue_index) for the waiting queues, round robin from behind the one granted last, until it
// says true.
template <typename Visit>
void PacketEngine::visit_waiting(std::uint32_t output_index, Visit visit) {
  const Output& output = outputs_[output_index];
  // Mostly one waits: whether before or behind the one granted last would be a mispredicted branch.
  if (output.waiting == 1 && output.waiting_mask != 0) {
    visit(output.first_queue + static_cast<std::uint32_t>(std::countr_zero(output.waiting_mask)));
    return;
  }
  const std::uint32_t start = output.last_granted + 1U == 64 * waiting_words_ ? 0 : output.last_granted + 1U;
  const std::uint64_t from_start = ~std::uint64_t{0} << start % 64;
  std::uint32_t index = start / 64;
  std::uint64_t word = waiting_word(output_index, index) & from_start;
  for (std::uint32_t i = 0;; ++i) {
    for (; word != 0; word &= word - 1) {
      if (visit(output.first_queue + index * 64 + static_cast<std::uint32_t>(std::countr_zero(word)))) return;
    }
    if (i == waiting_words_) return;
    if (++index == waiting_words_) index = 0;
    word = waiting_word(output_index, index);
    if (i + 1 == waiting_words_) word &= ~from_start;
  }
}

}  // namespace apenet
