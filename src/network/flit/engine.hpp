// FlitEngine: simulates input-queued routers cycle by cycle and flit by flit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernel/simulation.hpp"
#include "network/description.hpp"
#include "network/faults/halting_network.hpp"
#include "network/flit/fabric.hpp"
#include "network/flit/retries.hpp"
#include "network/flit/route_unit.hpp"
#include "network/flit/routers.hpp"
#include "network/flit/sinks.hpp"
#include "network/flit/sockets.hpp"
#include "network/flit/sources.hpp"
#include "network/network_trace.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

// The reference engine. docs/models/flit-engine.md specifies it register by register, and defines the cycle
// of machines whose times are not whole cycles.
//
// Cycle c lasts from time(c) to time(c + 1). One event at its end computes the whole cycle: the wires and
// registers at the end of cycle c depend on their values at its beginning, and on the packets injected and
// consumed up to its end. While no register can change, the engine schedules no event.
class FlitEngine final : public HaltingNetwork, private EventHandler {
 public:
  FlitEngine(Simulation& simulation, const Topology& topology, std::unique_ptr<const Routing> routing,
             const NetworkParameters& parameters);

  // Replaces this router by an instance of another implementation. Call it before the first packet.
  void plug(RouterId router, const FlitRouterMaker& maker);

  [[nodiscard]] std::uint32_t node_count() const override { return spec_.node_count; }
  void attach(NodeId node, NetworkClient& client) override;
  [[nodiscard]] std::int64_t injection_room(NodeId node, std::uint16_t channel) const override;
  void await_injection_room(NodeId node, std::uint16_t channel) override;
  std::int64_t inject(const Packet& packet, Time tail_time) override;
  void consumed(NodeId node, const Packet& packet) override;
  [[nodiscard]] std::uint32_t link_count() const override {
    return static_cast<std::uint32_t>(spec_.links.size());
  }
  [[nodiscard]] LinkStatistics link_statistics(std::uint32_t link) const override;
  [[nodiscard]] std::vector<std::string> warnings() const override;
  void begin(Time zero) override;
  [[nodiscard]] FaultUse fault_use() const override;

  void allow_halts() override { spec_.keeps_numbers = true; }
  std::uint64_t halt() override;
  void restart(const Routing* routing, InjectionGate* gate) override;
  [[nodiscard]] std::uint64_t messages_under_way() const override;
  [[nodiscard]] bool is_empty() const override {
    return !state_.is_awake && is_quiescent() && messages_under_way() == 0;
  }
  void take_routes(const Routing* routing) override { restart(routing, nullptr); }

  struct Spec {
    std::uint32_t fifos = 0;  // per node
    std::uint32_t max_packet_wire_bytes = 0;
    std::uint32_t node_count = 0;
    NetworkDescription::ChannelSelection channel_selection = {};
    bool keeps_numbers = false;      // for halts and arbitration by age
    std::vector<std::size_t> links;  // indices into the port table
    std::vector<std::string> link_names;
  };
  // The rest is in the states of FlitFabric, its delay lines and ports, FlitRouterBank, FlitSources,
  // FlitSinks and FlitRetries.
  struct State {
    std::vector<Time>
        head_times;  // per packet whose delivery is scheduled: arrival of the header, or never()
    // Free entries of the packet table, the latest first, chained by FlitPacket::next.
    std::uint32_t free_packet = FlitPacket::none;
    FlitCycle next_cycle = 0;
    // A cycle is scheduled, or runs and will schedule the next one if necessary; or the engine is halted.
    bool is_awake = false;
    std::uint32_t halts = 0;  // in events, too: those that an earlier halt has made void differ
    EventSource source;
  };

 private:
  enum class Step : std::uint8_t { cycle, delivered, injection_freed };

  struct Memo {
    // Time of the last injection, to save a 128-bit division. never() if the engine has become quiescent
    // since then: if last_time is now, the engine is awake.
    Time last_time = Time::never();
    FlitCycle last_cycle = 0;
    std::uint32_t last_wire_bytes = 0;  // the last packet's, to save the division for its length
    FlitLength last_length;
  };

  void wire(const Topology& topology);
  void keep_bubbles(const Routing& routing);
  void add_errors(const Topology& topology, const std::vector<LinkDescription>& links);
  void handle_event(const Event& event) override;
  void run_cycle();
  void wake(FlitCycle cycle);
  void schedule_cycle(FlitCycle cycle);
  [[nodiscard]] bool is_quiescent() const;
  void deliver(std::uint32_t packet, Time head_time);
  void tell_freed(NodeId node, std::uint16_t channel) const;
  std::int64_t prepare_and_inject(const Packet& packet, Time tail_time);
  std::int64_t note_injection(std::uint32_t index, const Packet& packet, Time tail_time, std::int64_t room);
  [[nodiscard]] FlitPacketRoute first_route(const Packet& packet, FlitLength length) const;
  void begin_route(std::uint32_t index, const Packet& packet);
  void number(std::uint32_t index);
  void admit_waiting(std::uint32_t ejection_port);
  [[nodiscard]] std::vector<bool> free_packets() const;
  [[nodiscard]] std::vector<std::uint32_t> take_from_network();
  void trace(NetworkTrace what, std::uint32_t place, const Packet& packet) const;

  Simulation& simulation_;
  std::unique_ptr<const Routing> own_routing_;
  FlitFabric fabric_;
  FlitRouteUnit route_unit_;  // computes the routes of the routing in force
  std::unique_ptr<FlitRouters> routers_;
  std::unique_ptr<FlitRetries> retries_;  // only when a link has bit errors
  FlitSockets sockets_;
  FlitSources sources_;
  FlitSinks sinks_;

  static constexpr std::uint32_t max_halts = 1U << 24U;
  Spec spec_;
  State state_;
  Memo memo_;
  std::vector<NetworkClient*> clients_;      // per node
  FlitSources::Events left_;                 // events of the running cycle
  std::vector<FlitSinks::Arrived> arrived_;  // the same
};

// Route of a packet whose header has reached no router yet.
[[gnu::always_inline]] inline FlitPacketRoute FlitEngine::first_route(const Packet& packet,
                                                                      FlitLength length) const {
  std::uint32_t lane = fabric_.card_channel(packet.channel);
  if (lane >= fabric_.virtual_channels) lane %= fabric_.virtual_channels;
  return {.target = route_unit_.target(packet.destination, draws_of(simulation_.seed(), packet)),
          .flits = length.flits,
          .wire_bytes = packet.wire_bytes,
          .lane = static_cast<std::uint8_t>(lane)};
}

}  // namespace apenet
