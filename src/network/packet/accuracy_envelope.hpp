// AccuracyEnvelope: up to which load the packet engine's latencies agree with the flit engine's, and the
// warning beyond.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"
#include "network/description.hpp"

namespace apenet::packet {

// Load and delays of a run's packets, over all of its virtual time.
struct Congestion {
  Time now = Time::zero();
  Time busiest = Time::zero();     // use of the busiest output
  Time waiting = Time::zero();     // sum over all headers, in arbitration for an output
  Time moving = Time::zero();      // sum over all packets, without their waiting
  Time ejecting = Time::zero();    // part of it in the nodes' ports
  Time ports_only = Time::zero();  // part of it for packets that cross no link
  // Further waiting in the flit engine, which uses outputs and lanes for longer: for links, and for nodes'
  // ports.
  Time unseen_at_links = Time::zero();
  Time unseen_at_ports = Time::zero();
};

// Limits and errors are those of accuracy_envelope.csv; docs/models/flit-engine.md, "The packet engine under
// load", says how they were found.
class AccuracyEnvelope {
 public:
  explicit AccuracyEnvelope(const NetworkParameters& parameters);

  // Time for which these packets use an output in the flit engine, or their one lane of it: a lane
  // idles between packets, and while it waits for credits, and ports carry at most a flit per cycle. Packets
  // behind others in a lane do not count as waiting, and thus as use. Stages: link classes, ejection,
  // injection.
  [[nodiscard]] Time use(std::size_t stage, Time busy, std::uint64_t packets, std::uint64_t wire_bytes) const;

  // Waiting time of these packets for an output that they use for a part of the time, as in a queue with
  // random arrivals and constant service (M/D/1).
  [[nodiscard]] static Time waiting(Time use, Time now);

  [[nodiscard]] std::vector<std::string> warnings(const Congestion& congestion) const;

 private:
  // A row of accuracy_envelope.csv.
  struct Row {
    std::string_view name;  // name of the class
    double use_percent;     // use of the busiest output
    double waiting_percent;
    double both_use_percent;  // both of these exceeded together
    double both_waiting_percent;
    int configurations;
    double lowest_percent;
    double median_percent;
    double highest_percent;
  };
  static const Row rows[];

  struct Lane {
    Time idle_after_packet;
    Time credit_loop;      // in which its buffer's bytes pass once; zero: no limit
    bool is_port = false;  // a node's port, out of the network
  };

  [[nodiscard]] static const Row& row(std::string_view name);
  [[nodiscard]] static const Row& row_of(const NetworkParameters& parameters);
  void warn_of_load(const Congestion& congestion, std::vector<std::string>& warnings) const;
  void warn_of_unseen(const Congestion& congestion, std::vector<std::string>& warnings) const;

  const Row& row_;
  double flit_slowdown_;  // slowdown of the flit engine's links; unless it is 1, that engine simulates
                          // another machine
  double flit_port_slowdown_;
  DataRate port_rate_;
  std::int64_t lane_bytes_;  // a buffer's bytes, in whole packets if it holds one
  std::vector<Lane> lanes_;  // per stage
};

}  // namespace apenet::packet
