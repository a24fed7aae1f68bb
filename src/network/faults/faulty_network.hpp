// FaultyNetwork: a network whose links and nodes fail and recover.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernel/simulation.hpp"
#include "network/faults/fault_schedule.hpp"
#include "network/faults/halting_network.hpp"
#include "network/routing/up_down.hpp"

namespace apenet {

// Static reconfiguration with take-back (docs/models/faults.md). When something fails or recovers, the engine
// halts. After `reconfiguration` it resumes with up*/down* routes over the live parts, or with the machine's
// own routing if everything is alive. No packet is lost, duplicated or overtaken, and routes of two routings
// never wait for each other.
//
// Throws NetworkPartitioned, out of the simulation's step, if a packet has no path and no later fault event
// gives it one.
class FaultyNetwork final : public Network, private EventHandler, private InjectionGate {
 public:
  // Throws std::invalid_argument for invalid faults.
  FaultyNetwork(Simulation& simulation, Topology topology, std::unique_ptr<HaltingNetwork> engine,
                const std::vector<std::string>& faults, Time reconfiguration, std::uint8_t rail);

  [[nodiscard]] std::uint32_t node_count() const override { return engine_->node_count(); }
  void attach(NodeId node, NetworkClient& client) override { engine_->attach(node, client); }
  [[nodiscard]] std::int64_t injection_room(NodeId node, std::uint16_t channel) const override {
    return engine_->injection_room(node, channel);
  }
  void await_injection_room(NodeId node, std::uint16_t channel) override {
    engine_->await_injection_room(node, channel);
  }
  void begin(Time zero) override;
  std::int64_t inject(const Packet& packet, Time tail_time) override {
    return engine_->inject(packet, tail_time);
  }
  void consumed(NodeId node, const Packet& packet) override { engine_->consumed(node, packet); }
  void prepare(NodeId node, std::uint16_t channel) const override { engine_->prepare(node, channel); }
  [[nodiscard]] std::uint32_t link_count() const override { return engine_->link_count(); }
  [[nodiscard]] LinkStatistics link_statistics(std::uint32_t link) const override {
    return engine_->link_statistics(link);
  }
  [[nodiscard]] std::uint64_t link_crossings() const override { return engine_->link_crossings(); }
  [[nodiscard]] std::vector<PortUse> port_use() const override { return engine_->port_use(); }
  [[nodiscard]] std::vector<std::string> warnings() const override;
  [[nodiscard]] FaultUse fault_use() const override;
  [[nodiscard]] std::size_t faults_ahead() const override { return state_.scheduled; }
  [[nodiscard]] bool has_packets_at_risk() const override { return engine_->messages_under_way() != 0; }

  struct State {
    // Kind credit comes first at its instant, so that all other events of that instant see the changed
    // network.
    EventSource source;
    Time zero;
    std::size_t done = 0;       // changes applied
    std::size_t scheduled = 0;  // events pending
    Time restart_at;
  };
  struct Counters {
    std::uint64_t events = 0;
    std::uint64_t reconfigurations = 0;
    std::uint64_t packets_taken_back = 0;
  };

 private:
  enum class Step : std::uint64_t { change, restart };
  using Islands = std::vector<std::uint32_t>;

  void handle_event(const Event& event) override;
  using EventHandler::prepare;  // The network's prepare() hides it otherwise.
  bool admits(const Packet& packet) override;
  void schedule(Time when, Step step);
  void schedule_next();
  void change();
  void restart();
  [[nodiscard]] const Islands& islands_after(std::size_t changes);
  [[nodiscard]] bool reaches(std::size_t changes, const Packet& packet);
  [[noreturn]] void report(const Packet& packet);

  Simulation& simulation_;
  Topology topology_;
  std::unique_ptr<HaltingNetwork> engine_;
  FaultSchedule schedule_;
  const Time reconfiguration_;
  State state_;
  Counters counters_;
  // These follow from State::done.
  Liveness liveness_;
  std::unique_ptr<const UpDownRouting> routing_;  // nullptr: the machine's own routing
  std::vector<Islands> islands_;                  // per number of changes; empty: not computed yet
};

}  // namespace apenet
