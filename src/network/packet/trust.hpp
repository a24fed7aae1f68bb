// Trust: up to which load the packet engine's latencies agree with the flit engine's, and the warning beyond.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernel/time.hpp"
#include "network/description.hpp"

namespace apenet::packet {

// What a run's packets met, over all of its virtual time.
struct Congestion {
  Time now = Time::zero();
  Time busiest = Time::zero();  // use of the busiest output
  Time waiting = Time::zero();  // of all headers, in arbitration for an output
  Time moving = Time::zero();   // what all packets would have taken without waiting
};

// The limits and the sizes of deviations are measured: docs/models/flit-engine.md, "The packet engine under
// load".
class Trust {
 public:
  explicit Trust(const NetworkParameters& parameters);

  // How long an output of this stage stands idle after each packet in the flit engine: a time that the packet
  // engine does not model, and that counts as use. Stages: link classes, ejection, injection.
  [[nodiscard]] Time idle_after_packet(std::size_t stage) const { return idle_after_packet_[stage]; }

  [[nodiscard]] std::vector<std::string> warnings(const Congestion& congestion) const;

 private:
  // Within these limits, latencies of this kind of machine were within 10 %. Use is that of the busiest
  // output; waiting is a share of the time that packets need alone.
  struct Limits {
    const char* kind;
    const char* deviation;  // beyond them, as measured
    double use;
    double waiting;
    double use_of_both;  // both of these exceeded together
    double waiting_of_both;
  };

  [[nodiscard]] static Limits limits_of(const NetworkParameters& parameters);

  Limits limits_;
  double flit_slowdown_;  // of the flit engine's links; unless it is 1, that engine simulates another machine
  std::vector<Time> idle_after_packet_;
};

}  // namespace apenet::packet
