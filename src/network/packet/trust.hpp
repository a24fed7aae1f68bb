// Trust: up to which load the packet engine's latencies agree with the flit engine's, and the warning beyond.
#pragma once

#include <string>
#include <vector>

#include "kernel/time.hpp"
#include "network/description.hpp"

namespace apenet::packet {

// The limits are measured: docs/models/flit-engine.md, "The packet engine under load".
class Trust {
 public:
  explicit Trust(const NetworkParameters& parameters);

  // How long an output of this stage stands idle after each packet in the flit engine: a time that the packet
  // engine does not model, and that counts as use. Stages: link classes, ejection, injection.
  [[nodiscard]] Time idle_after_packet(std::size_t stage) const { return idle_after_packet_[stage]; }

  // `busiest` is the use of the busiest output in the virtual time `now`.
  [[nodiscard]] std::vector<std::string> warnings(Time busiest, Time now) const;

 private:
  double trusted_use_;    // of the busiest output, up to which latencies are within 10 %
  double flit_slowdown_;  // of the flit engine's links; unless it is 1, that engine simulates another machine
  std::vector<Time> idle_after_packet_;
};

}  // namespace apenet::packet
