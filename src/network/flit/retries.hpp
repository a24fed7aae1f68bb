// FlitRetries: links with bit errors, which repeat corrupted packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "network/faults/bit_errors.hpp"
#include "network/flit/fabric.hpp"

namespace apenet {

// The link layer behind a router's output: go-back-N as docs/models/faults.md defines it. It lies outside the
// routers, which cannot tell the difference between a link that repeats and a long one: the credits of the
// buffer at the far end bound what the link holds.
//
// The first flit of a packet waits until the good transmission of its packet begins, and all later flits of
// the link follow in their order, one per FlitLinkTiming::flit_cycles.
class FlitRetries {
 public:
  struct Link {
    double bit_error_rate = 0;  // 0: a port without errors
    std::uint32_t number = 0;   // in BitErrors
    FlitCycle flit_cycles = 1;
    FlitCycle turnaround = 0;  // from a bad packet's last flit to its next transmission
  };

  // links: as FlitFabric::port_table. link_count: of BitErrors.
  FlitRetries(FlitFabric& fabric, std::vector<Link> links, std::size_t link_count);

  // As DelayLine::push_late() to the port's flit wire.
  void send(std::size_t port_index, FlitCycle later, const FlitArrival& arrival);
  // Takes the flits that have crossed their switch by the end of this cycle, and puts on the wires what the
  // links no longer hold. Call it when all routers have sent.
  void tick(FlitCycle now);
  [[nodiscard]] bool is_quiescent() const { return state_.crossing.empty() && state_.held.empty(); }

  // Drops all flits; the links are free in this cycle.
  void reset(FlitCycle cycle);
  // Restarts all counts, and with them the draws.
  void begin();

  [[nodiscard]] const BitErrors::Counters& errors(std::size_t port_index) const {
    return errors_.link(links_[port_index].number);
  }
  // Cycles in which the link repeated packets, and waited to do so.
  [[nodiscard]] FlitCycle lost_cycles(std::size_t port_index) const { return counters_.lost[port_index]; }

  struct Crossing {
    std::size_t port_index = 0;
    FlitCycle due = 0;  // arrives in this cycle if the link is free
    FlitArrival arrival;
  };
  struct Held {
    std::uint32_t wire = 0;
    FlitArrival arrival;
  };
  struct State {
    std::vector<FlitCycle> next;  // per port: the next flit arrives in this cycle at the earliest
    // Ordered by the cycle in which they have crossed the switch. A halt drops them, without a draw for them.
    std::multimap<FlitCycle, Crossing> crossing;
    std::multimap<FlitCycle, Held> held;  // by the cycle of arrival, if that is beyond the delay line
  };
  struct Counters {
    std::vector<FlitCycle> lost;  // per port
  };

 private:
  void enter(const Crossing& flit);

  FlitFabric& fabric_;
  std::vector<Link> links_;  // as FlitFabric::port_table
  BitErrors errors_;
  State state_;
  Counters counters_;
};

}  // namespace apenet
