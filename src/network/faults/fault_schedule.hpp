// FaultSchedule: which links and nodes die and revive, and when.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/time.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

// One fault as it is written: `link (0,0,0)+x down @10us up @2ms`.
//
//   link NAME      the cable of that link: a cable fails as a whole, in both directions
//   node NAME      a node by its number, or, where every router has one node, by its router's name; there it
//   dies
//                  with its router, elsewhere its card alone
//   switch NAME    a router, with all its cables and the connections of its nodes
//
// Then `down @TIME` and `up @TIME` in turn, at growing times from the begin of virtual time. A time is a
// decimal number and ps, ns, us, ms or s.
struct Fault {
  enum class Kind : std::uint8_t { link, node, router };
  struct Change {
    Time time;
    bool is_up = false;
  };
  Kind kind = Kind::link;
  std::string name;
  std::vector<Change> changes;
  std::string text;
};

// Throws std::invalid_argument that quotes the text and says what was expected.
[[nodiscard]] Fault parse_fault(const std::string& text);

// "12.5 us": for messages.
[[nodiscard]] std::string time_text(Time time);

// What of a network is alive. A port is dead as long as at least one fault that concerns it is down.
class Liveness {
 public:
  static constexpr std::uint32_t no_island = 0xffffffff;

  explicit Liveness(const Topology& topology)
      : ports_(topology.ports_per_router()),
        dead_causes_(static_cast<std::size_t>(topology.router_count()) * ports_) {}

  [[nodiscard]] bool is_alive(PortRef port) const { return dead_causes_[index(port)] == 0; }
  [[nodiscard]] bool is_all_alive() const { return dead_ports_ == 0; }
  void change(const std::vector<PortRef>& ports, bool is_up);

  // Per endpoint: those of one island reach each other; no_island for one whose connection is dead.
  [[nodiscard]] std::vector<std::uint32_t> find_islands(const Topology& topology) const;

 private:
  [[nodiscard]] std::size_t index(PortRef port) const {
    return static_cast<std::size_t>(port.router) * ports_ + port.port;
  }

  std::uint32_t ports_;
  std::vector<std::uint32_t> dead_causes_;  // per router and port
  std::size_t dead_ports_ = 0;
};

class FaultSchedule {
 public:
  struct Change {
    Time time;
    std::uint32_t fault = 0;
    bool is_up = false;
  };

  // Throws std::invalid_argument as parse_fault does, and for names that the topology does not have.
  FaultSchedule(const Topology& topology, const std::vector<std::string>& texts);

  // By time; at one time in the order of the faults.
  [[nodiscard]] const std::vector<Change>& changes() const { return changes_; }
  [[nodiscard]] const Fault& fault(std::uint32_t index) const { return faults_[index]; }
  void apply(const Change& change, Liveness& liveness) const {
    liveness.change(ports_[change.fault], change.is_up);
  }

 private:
  std::vector<Fault> faults_;
  std::vector<std::vector<PortRef>> ports_;  // per fault: both ends of every cable, and attachments
  std::vector<Change> changes_;
};

}  // namespace apenet
