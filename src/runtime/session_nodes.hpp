// The nodes of a session's processes, as the machine numbers them and as the processes see them.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/machine.hpp"
#include "runtime/session.hpp"

namespace apenet {

// The number of a node in the partition. Throws std::invalid_argument for a node outside.
[[nodiscard]] std::uint32_t place_in(const PartitionView& partition, NodeId node);

// The torus or mesh of a rail as the processes see it. A partition is a box of the first rail's network, and
// so of each other network with the same extents.
[[nodiscard]] ipc::Grid grid_of(const TopologyDescription& topology, const TopologyDescription& first,
                                const PartitionView& partition);

// The nodes of the machine's processes: the ranks of the jobs, and behind them the ranks of the traces, or
// the kernels of IpNetwork.
[[nodiscard]] std::vector<NodeId> nodes_of_processes(const MachineDescription& machine,
                                                     const std::vector<SessionJob>& jobs,
                                                     const std::vector<GoalJob>& traces);

}  // namespace apenet
