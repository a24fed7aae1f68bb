// Placement: the node of each process, and the port of the card that it uses.
#pragma once

#include <cstdint>
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

  [[nodiscard]] NodeId node(ProcessId process) const { return node_[process]; }
  [[nodiscard]] std::uint32_t port(ProcessId process) const { return port_[process]; }
  [[nodiscard]] std::uint32_t processes_on(NodeId node) const { return processes_[node]; }
  [[nodiscard]] std::uint32_t process_count() const { return static_cast<std::uint32_t>(node_.size()); }

 private:
  std::vector<NodeId> node_;
  std::vector<std::uint32_t> port_;
  std::vector<std::uint32_t> processes_;
};

}  // namespace apenet
