// PacketEngine: virtual cut-through with credits, one packet one object.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "kernel/simulation.hpp"
#include "network/make_network.hpp"
#include "network/network.hpp"
#include "network/routing.hpp"
#include "network/serialisation.hpp"
#include "network/topology.hpp"

namespace apenet {

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
// 32-bit indices, and records of a cache line, because a network of 100 k nodes lives in memory, not in the
// cache.
//
// Invariants: a queue with packets has exactly one of: a `ready` event pending, or its head in the waiting
// set of one output. An output with waiting queues has a `wake` event pending, or waits for room whose return
// is not yet known (Queue::needed_bytes), or for Network::consumed.
class PacketEngine final : public Network, private EventHandler {
 public:
  PacketEngine(Simulation& simulation, const Topology& topology, std::unique_ptr<const Routing> routing,
               const NetworkParameters& parameters);

  [[nodiscard]] std::uint32_t node_count() const override {
    return static_cast<std::uint32_t>(endpoints_.size());
  }
  void attach(NodeId node, NetworkClient& client) override;
  [[nodiscard]] std::int64_t injection_room(NodeId node, std::uint16_t channel) const override;
  void inject(const Packet& packet, Time tail_time) override;
  void consumed(NodeId node, const Packet& packet) override;
  [[nodiscard]] std::uint32_t link_count() const override {
    return static_cast<std::uint32_t>(links_.size());
  }
  [[nodiscard]] LinkStatistics link_statistics(std::uint32_t link) const override;

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  enum class Step : std::uint8_t { ready, wake, delivered, injection_freed };
  enum class OutputKind : std::uint8_t { unused, link, ejection, injection };

  struct alignas(64) Flight {
    Packet packet;
    Time tail_in;               // when the tail is in the queue the packet is in, or in the ejection buffer
    Time ready;                 // when the header may leave that queue; at ejection: when it arrived
    std::uint32_t next = none;  // behind it in the queue, or the next free record
  };

  struct Queue {
    Time free_at;                 // the tail of the packet handed over last has left
    std::int64_t room_bytes = 0;  // as the upstream output knows it
    std::uint32_t head = none;    // flights
    std::uint32_t tail = none;
    std::uint32_t first_return = none;  // credits on their way to the upstream output
    std::uint32_t last_return = none;
    std::uint32_t wanted_output = none;  // of the head packet while it waits
    std::uint32_t wanted_buffer = none;  // queue behind that output, or the endpoint
    std::uint32_t upstream_output = none;
    std::uint32_t needed_bytes = 0;  // what the upstream output waits for; 0: nothing
    RouterId router = 0;
  };

  struct alignas(64) Output {
    Time free_at;
    Time wake_at = Time::never();  // of the event that counts; later ones are void
    Time busy;
    std::uint64_t packets = 0;
    std::uint64_t wire_bytes = 0;
    std::uint32_t first_queue = 0;   // queues that can ask for it: consecutive from here
    std::uint32_t first_buffer = 0;  // queues behind it, one per virtual channel; or the endpoint
    RouterId router = 0;
    std::uint16_t queue_count = 0;
    std::uint16_t waiting = 0;
    std::uint16_t last_granted = 0;  // relative to first_queue
    OutputKind kind = OutputKind::unused;
    std::uint8_t stage = 0;  // index into stages_
  };

  // What outputs of one kind and dimension share.
  struct Stage {
    Serialisation serialisation;
    Time latency;
  };

  struct CreditReturn {
    Time time;
    std::uint32_t bytes = 0;
    std::uint32_t next = none;
  };

  struct Endpoint {
    NetworkClient* client = nullptr;
    std::int64_t ejection_room_bytes = 0;
    std::uint32_t ejection_output = 0;
    std::uint32_t injection_output = 0;
  };

  void wire(const Topology& topology, const NetworkParameters& parameters);
  void wire_router(const Topology& topology, RouterId router);
  void wire_endpoint(const Topology& topology, NodeId node);

  void handle_event(const Event& event) override;
  void schedule(EventSource& source, Time when, Step step, std::uint64_t index);
  void request(std::uint32_t queue_index);
  void choose_output(Queue& queue, std::uint32_t queue_index);
  void arbitrate(std::uint32_t output_index);
  void await_room(std::uint32_t output_index);
  void wake(std::uint32_t output_index, Time when);
  void grant(std::uint32_t queue_index);
  void leave_queue(std::uint32_t queue_index, Time tail_out, std::uint32_t bytes);
  void enter_queue(std::uint32_t queue_index, std::uint32_t flight_index, EventSource& source);
  void deliver(std::uint32_t flight_index);
  void free_injection(std::uint32_t queue_index, std::uint32_t bytes);

  [[nodiscard]] bool has_room(const Output& output, std::uint32_t buffer, std::uint32_t bytes);
  [[nodiscard]] Time room_time(const Queue& queue, std::uint32_t bytes) const;
  void add_return(Queue& queue, Time time, std::uint32_t bytes);
  [[nodiscard]] std::uint32_t new_flight();
  template <typename Visit>
  void visit_waiting(std::uint32_t output_index, Visit visit);
  [[nodiscard]] bool is_injection(std::uint32_t queue_index) const {
    return queue_index >= first_injection_queue_;
  }
  void trace(std::uint16_t what, std::uint32_t place, const Packet& packet) const;

  Simulation& simulation_;
  std::unique_ptr<const Routing> routing_;
  std::uint32_t ports_;             // per router
  std::uint32_t virtual_channels_;  // per link
  std::uint32_t lanes_;             // virtual channels per class
  std::uint32_t card_channels_;
  std::uint32_t max_packet_wire_bytes_;
  Time router_latency_;
  Time credit_latency_;
  std::int64_t injection_buffer_bytes_;
  std::int64_t ejection_buffer_bytes_;
  std::uint32_t first_injection_queue_;
  std::uint32_t waiting_words_;         // per output in waiting_
  std::vector<Queue> queues_;           // (router, port, virtual channel), then (node, card channel)
  std::vector<Output> outputs_;         // (router, port), then the injection port of each node
  std::vector<std::uint64_t> waiting_;  // a bit for each queue that waits for an output
  std::vector<Stage> stages_;           // link classes, then the local ports
  std::vector<Endpoint> endpoints_;
  std::vector<EventSource> link_sources_;  // per router: an output is free, room has returned, a tail arrived
  std::vector<EventSource> router_sources_;  // per router: a header is ready to leave
  std::vector<Flight> flights_;
  std::uint32_t free_flight_ = none;
  std::vector<CreditReturn> returns_;
  std::uint32_t free_return_ = none;
  std::vector<std::uint32_t> links_;  // outputs that are links, for the statistics
  std::vector<std::string> link_names_;
};

// TraceRecord::what of EventKind::link records; a is the message, b source << 32 | sequence.
enum class NetworkTrace : std::uint16_t { injected, granted, delivered };

}  // namespace apenet
