#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernel/simulation.hpp"
#include "network/flit/timing.hpp"
#include "network/network.hpp"
#include "network/routing/injection_fifos.hpp"
#include "runtime/traffic/fifo_backlogs.hpp"
#include "runtime/traffic/traffic.hpp"
#include "runtime/traffic/traffic_options.hpp"
#include "runtime/traffic/traffic_pattern.hpp"

namespace apenet {

// One event per cycle visits the nodes whose next packet is due. A node's queue is not stored: its next
// packet is drawn when the previous one has been injected, and may be overdue by then.
class TrafficRun final : private EventHandler {
 public:
  TrafficRun(const NetworkDescription& network, const TrafficOptions& options);
  [[nodiscard]] TrafficPoint run();

 private:
  class Node final : public NetworkClient {
   public:
    Node(TrafficRun& run, NodeId node) : run_(run), node_(node) {}
    void packet_arrived(const Packet& packet, Time /*head_time*/) override {
      arrived_ += run_.packet_arrived(node_, packet) ? 1U : 0U;
    }
    [[nodiscard]] std::uint32_t arrived() const { return arrived_; }
    // Not needed: a node without room is visited in every cycle.
    void injection_freed(std::uint16_t /*channel*/) override {}
    void packet_entered(const Packet& packet, Time head_time) override {
      run_.packet_entered(packet, head_time);
    }

   private:
    TrafficRun& run_;
    NodeId node_;
    std::uint32_t arrived_ = 0;  // packets, in the window
  };

  // A packet that had to wait at its source and is now in the network. Packet::message identifies it: the
  // cycle in which it was generated, or with several sources the same and the number of the source.
  struct Waited {
    std::uint64_t message = 0;
    std::int64_t wait_ps = 0;
  };

  // A packet source of a node; its next packet has already been drawn.
  struct Source {
    SplitMix64 random;
    std::int64_t next = -1;    // cycle of the next packet
    std::uint32_t choice = 0;  // random bits for its destination
    std::uint32_t room = 0;    // lower bound of the free space in its FIFO
    NodeId due_too = 0;        // next source in the chain of those due in the same cycle
  };

  void handle_event(const Event& event) override;
  void offer_due();
  void generate(std::uint32_t number);
  void drain_backlogs();
  [[nodiscard]] bool try_inject(NodeId node, std::uint16_t fifo, const FifoBacklogs::Waiting& waiting);
  [[nodiscard]] std::uint16_t least_loaded(NodeId node) const;
  [[nodiscard]] std::int64_t generated_at(std::uint64_t message) const {
    return static_cast<std::int64_t>(sources_of_node_ == 1 ? message : message / sources_of_node_);
  }
  [[nodiscard]] bool is_ready(NodeId node);
  [[nodiscard]] bool offer(NodeId node);
  void catch_up(NodeId node);
  [[nodiscard]] NodeId destination(NodeId node, std::uint32_t choice) const {
    if (number_of_.empty()) [[likely]]
      return pattern_.destination(node, choice);
    return options_.partition.nodes[pattern_.destination(number_of_[node], choice)];
  }
  void add_sources();
  void draw_next(Source& source);
  void set_due(NodeId node, std::int64_t cycle);
  bool packet_arrived(NodeId node, const Packet& packet);
  void packet_entered(const Packet& packet, Time head_time);
  [[nodiscard]] std::vector<Waited>::iterator find_waited(NodeId source, std::uint64_t message);
  void count_latency(std::int64_t latency_ps);
  void consume_waited(NodeId node, const Packet& packet);
  void note_wait(NodeId source, std::uint64_t message, std::int64_t wait_ps);
  // One comparison each: the unsigned distance from the begin of the window.
  [[nodiscard]] bool is_generated_in_window(std::int64_t cycle) const {
    return static_cast<std::uint64_t>(cycle - options_.warmup_cycles) <
           static_cast<std::uint64_t>(options_.measure_cycles);
  }
  [[nodiscard]] bool is_queued(NodeId source, std::int64_t generated) const {
    return !first_queued_.empty() && generated >= first_queued_[source] && generated < options_.warmup_cycles;
  }
  [[nodiscard]] bool is_measured(NodeId source, std::int64_t generated) const {
    return is_generated_in_window(generated) || is_queued(source, generated);
  }
  void begin_window();
  [[nodiscard]] bool is_in_window(Time time) const {
    return static_cast<std::uint64_t>((time - window_begin_time_).ps()) <
           static_cast<std::uint64_t>(window_time_.ps());
  }
  // Whether the next packet of some node was generated before the end of the window.
  [[nodiscard]] bool is_behind() const {
    if (sources_of_node_ > 1)
      return backlogs_.has_before(static_cast<std::uint64_t>(window_end_) * sources_of_node_);
    return std::any_of(sources_.begin(), sources_.end(),
                       [this](const Source& source) { return source.next < window_end_; });
  }
  // As timing_.time(), without its division if a cycle is a whole number of picoseconds.
  [[nodiscard]] Time time_of(std::int64_t cycle) const {
    return whole_cycle_ps_ != 0 ? Time::from_ps(cycle * whole_cycle_ps_) : timing_.time(cycle);
  }
  [[nodiscard]] std::uint64_t probability() const;
  [[nodiscard]] double in_cycles(std::int64_t ps) const {
    return static_cast<double>(ps) * static_cast<double>(timing_.clock.frequency_hz) /
           static_cast<double>(ps_per_second);
  }
  [[nodiscard]] TrafficPoint result() const;
  [[nodiscard]] std::vector<std::string> warnings(const TrafficPoint& point) const;

  TrafficOptions options_;
  bool is_packet_engine_;
  Time reconfiguration_;
  Simulation simulation_;
  FlitTiming timing_;
  std::uint32_t packet_bytes_;
  std::unique_ptr<Network> network_;
  std::uint32_t sources_of_node_;  // as many as injection FIFOs
  InjectionFifos fifos_;
  FifoBacklogs backlogs_;
  TrafficPattern pattern_;
  std::vector<std::uint32_t> number_of_;  // per node, its number in the partition; empty: all send
  GeometricGap gap_;
  std::int64_t window_end_;
  Time window_begin_time_;
  Time window_time_;
  std::int64_t link_flit_cycles_;
  std::int64_t whole_cycle_ps_ = 0;  // 0 if not whole
  std::vector<Node> nodes_;
  std::vector<Source> sources_;  // one per node
  // For each of the next cycles: the first node to visit; each node knows the next one. A node whose packet
  // is farther away is visited in the last of these cycles and postponed again. Chains are faster than bit
  // sets, whose loop ends with a mispredicted branch in every word.
  static constexpr std::size_t cycles_ahead = 64;
  static constexpr NodeId no_node = 0xffffffff;
  std::array<NodeId, cycles_ahead> due_;
  std::vector<std::vector<Waited>> waited_;  // per source: measured packets in the network that have waited
  EventSource source_{EventKind::process, 0, 0};
  std::int64_t cycle_ = -1;  // the current one
  bool is_done_ = false;
  Packet packet_;  // the packet to inject; only a few fields differ between packets

  // Only with measures_queued, from the begin of the window: per node, the cycle in which the first packet of
  // its queue was generated.
  std::vector<std::int64_t> first_queued_;

  std::uint64_t queued_ = 0;    // injected packets that were generated before the window
  std::uint64_t injected_ = 0;  // measured packets: into the network ...
  std::uint64_t drained_ = 0;   // ... and out of it
  std::int64_t latency_ps_ = 0;
  std::int64_t wait_ps_ = 0;  // time that the drained packets waited at their sources
  std::int64_t min_ps_ = Time::never().ps();
  std::int64_t max_ps_ = 0;
  std::uint64_t hops_ = 0;
};

}  // namespace apenet
