// Placement: the node of each process, and the port of the card that it uses.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "network/packet.hpp"
#include "nic/nic.hpp"

namespace apenet {

class Placement {
 public:
  // node_of_process[p] is the node of process p. The processes of a node get its ports in order.
  Placement(std::vector<NodeId> node_of_process, std::uint32_t node_count)
      : node_(std::move(node_of_process)), processes_(node_count, 0) {
    port_.reserve(node_.size());
    for (const NodeId node : node_) port_.push_back(processes_[node]++);
  }
  // For processes that come later: each node has this many ports.
  static Placement without_processes(std::uint32_t ports_per_node, std::uint32_t node_count) {
    Placement placement({}, node_count);
    placement.processes_.assign(node_count, ports_per_node);
    return placement;
  }

  // Adds the processes of a program, and returns the first one. Requires a port for each. They get the ports
  // of their nodes in order, whatever programs have had them before.
  ProcessId add(const std::vector<NodeId>& nodes) {
    const ProcessId first = process_count();
    std::vector<std::uint32_t> taken(processes_.size(), 0);
    for (const NodeId node : nodes) {
      node_.push_back(node);
      port_.push_back(taken[node]++);
    }
    return first;
  }

  [[nodiscard]] NodeId node(ProcessId process) const { return node_[process]; }
  [[nodiscard]] std::uint32_t port(ProcessId process) const { return port_[process]; }
  // That may use the node's card at a time.
  [[nodiscard]] std::uint32_t processes_on(NodeId node) const { return processes_[node]; }
  // The same of all nodes.
  [[nodiscard]] std::uint32_t port_count() const {
    return std::accumulate(processes_.begin(), processes_.end(), std::uint32_t{0});
  }
  [[nodiscard]] std::uint32_t process_count() const { return static_cast<std::uint32_t>(node_.size()); }

 private:
  std::vector<NodeId> node_;
  std::vector<std::uint32_t> port_;
  std::vector<std::uint32_t> processes_;
};

}  // namespace apenet
