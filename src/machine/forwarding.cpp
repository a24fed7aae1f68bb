#include "machine/forwarding.hpp"

#include <algorithm>

namespace apenet {

namespace {

// At least one, as a message without payload takes one packet.
std::int64_t parts_of(std::int64_t bytes, std::int64_t part_bytes) {
  return std::max<std::int64_t>(1, (bytes + part_bytes - 1) / part_bytes);
}

}  // namespace

Forwarding::Forwarding(const MachineDescription& machine)
    : traits_(card_traits(machine.nic, machine.host)),
      // Wiring such a card refuses other topologies, which have no dimensions.
      is_by_software_(traits_.forwards_by_software && !machine.network.topology.dims().empty()),
      shape_(is_by_software_ ? machine.network.topology.dims() : std::vector<std::uint32_t>{1}),
      wraps_(machine.network.topology.as<TorusDescription>() != nullptr) {}

std::uint64_t Forwarding::packet_hops(NodeId from, NodeId to, std::int64_t bytes) const {
  const std::uint32_t hops = shape_.distance(from, to, wraps_);
  if (hops < 2) return 0;
  const std::int64_t payload_bytes = traits_.max_packet_wire_bytes - traits_.packet_overhead_bytes;
  const std::int64_t piece_bytes = traits_.capabilities.max_message_bytes;
  const std::int64_t full_pieces = parts_of(bytes, piece_bytes) - 1;
  const std::int64_t packets = full_pieces * parts_of(piece_bytes, payload_bytes) +
                               parts_of(bytes - full_pieces * piece_bytes, payload_bytes);
  return hops * static_cast<std::uint64_t>(packets);
}

}  // namespace apenet
