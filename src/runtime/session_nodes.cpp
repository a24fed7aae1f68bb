#include "runtime/session_nodes.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include "kernel/refuse.hpp"

namespace apenet {
namespace {

std::vector<NodeId> nodes_of(const std::vector<SessionJob>& jobs) {
  std::vector<NodeId> nodes;
  for (const SessionJob& job : jobs)
    nodes.insert(nodes.end(), job.node_of_rank.begin(), job.node_of_rank.end());
  return nodes;
}

// The nodes of the ranks, in order.
std::vector<NodeId> distinct(std::vector<NodeId> nodes) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

// The kernel of a node has a port of its card, as each rank has.
void require_ports_for_kernels(const MachineDescription& machine, const std::vector<NodeId>& nodes) {
  const CardTraits traits = card_traits(machine.nic, machine.host);
  std::map<NodeId, std::int64_t> ranks;
  for (const NodeId node : nodes) {
    if (++ranks[node] < traits.max_processes) continue;
    const std::int64_t most = traits.max_processes - 1;
    refuse_value(
        "ip", "true",
        (most == 0 ? std::string("a machine with more ports")
                   : "at most " + std::to_string(most) + (most == 1 ? " rank" : " ranks") + " a node") +
            ", because the node's kernel has one of " + traits.max_processes_key + " = " +
            std::to_string(traits.max_processes));
  }
}

}  // namespace

std::uint32_t place_in(const PartitionView& partition, NodeId node) {
  if (partition.nodes.empty()) return node;
  const auto found = std::find(partition.nodes.begin(), partition.nodes.end(), node);
  if (found == partition.nodes.end())
    refuse_value("partition", std::to_string(node), "a node of the partition for each rank");
  return static_cast<std::uint32_t>(found - partition.nodes.begin());
}

ipc::Grid grid_of(const TopologyDescription& topology, const TopologyDescription& first,
                  const PartitionView& partition) {
  ipc::Grid grid;
  std::vector<std::uint32_t> extents = topology.dims();
  const bool is_whole = partition.nodes.empty();
  if (!is_whole) extents = extents == first.dims() ? partition.extents : std::vector<std::uint32_t>{};
  grid.dimensions = static_cast<std::uint32_t>(std::min<std::size_t>(extents.size(), ipc::most_dimensions));
  std::copy_n(extents.begin(), grid.dimensions, grid.extents);
  if (topology.kind().wraps) grid.closed = is_whole ? (1U << grid.dimensions) - 1 : partition.spanned;
  return grid;
}

std::vector<NodeId> nodes_of_processes(const MachineDescription& machine, const std::vector<SessionJob>& jobs,
                                       const std::vector<GoalJob>& traces) {
  std::vector<NodeId> nodes = nodes_of(jobs);
  const std::vector<NodeId> of_traces = nodes_of(traces);
  nodes.insert(nodes.end(), of_traces.begin(), of_traces.end());
  if (jobs.empty() || !jobs.front().options.has_sockets) return nodes;
  if (jobs.size() + traces.size() > 1) refuse_value("ip", "true", "one job alone on the machine");
  if (machine.ip_software.costs.mtu_bytes == 0)
    refuse_value("software.ip", "absent", "the costs of the kernel's TCP/IP, for sockets");
  require_ports_for_kernels(machine, nodes);
  const std::vector<NodeId> kernels = distinct(nodes);
  nodes.insert(nodes.end(), kernels.begin(), kernels.end());
  return nodes;
}

}  // namespace apenet
