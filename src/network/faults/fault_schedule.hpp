// FaultSchedule: which links and nodes fail and recover, and when.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/time.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

enum class FaultKind : std::uint8_t { link, node, router };

// One fault as written by the user: `link (0,0,0)+x down @10us up @2ms`.
//
//   link NAME      the cable of that link; a cable fails as a whole, in both directions
//   node NAME      a node by its number or, if every router has one node, by its router's name. In that
//                  case it fails with its router, otherwise only its card fails
//   switch NAME    a router, with all its cables and the connections of its nodes
//
// Then `down @TIME` and `up @TIME` alternate, at increasing times since the start of virtual time. A time is
// a decimal number with ps, ns, us, ms or s.
struct Fault {
  struct Change {
    Time time;
    bool is_up = false;
  };
  FaultKind kind = FaultKind::link;
  std::string name;
  std::vector<Change> changes;
  std::string text;
};

// Throws std::invalid_argument, which quotes the text and names what was expected.
[[nodiscard]] Fault parse_fault(const std::string& text);

// Formats a time for messages, for example "12.5 us".
[[nodiscard]] std::string time_text(Time time);

// Which ports of a network are alive. A port is dead while at least one fault that affects it is down.
class Liveness {
 public:
  static constexpr std::uint32_t no_island = 0xffffffff;

  explicit Liveness(const Topology& topology)
      : ports_(topology.ports_per_router()),
        dead_causes_(static_cast<std::size_t>(topology.router_count()) * ports_) {}

  [[nodiscard]] bool is_alive(PortRef port) const { return dead_causes_[index(port)] == 0; }
  [[nodiscard]] bool is_all_alive() const { return dead_ports_ == 0; }
  void change(const std::vector<PortRef>& ports, bool is_up);

  // Returns the island of each endpoint: nodes of one island reach each other. no_island for a node whose
  // connection is dead.
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

  // Throws std::invalid_argument like parse_fault(), and for names that the topology does not have.
  FaultSchedule(const Topology& topology, const std::vector<std::string>& texts);

  // Sorted by time; at equal times in the order of faults.
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
