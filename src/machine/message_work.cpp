#include "machine/message_work.hpp"

namespace apenet {

namespace {

// At least one, as a message without payload takes one packet. part_bytes: zero if nothing is divided.
std::int64_t parts_of(std::int64_t bytes, std::int64_t part_bytes) {
  if (part_bytes <= 0 || bytes <= part_bytes) return 1;
  return bytes / part_bytes + (bytes % part_bytes == 0 ? 0 : 1);
}

}  // namespace

MessageWork::MessageWork(const MachineDescription& machine)
    : traits_(card_traits(machine.nic, machine.host)), distances_(machine.network.topology) {}

PacketHops MessageWork::of(NodeId from, NodeId to, std::int64_t bytes) const {
  const std::int64_t payload_bytes = traits_.max_packet_wire_bytes - traits_.packet_overhead_bytes;
  const std::int64_t piece_bytes = traits_.capabilities.max_message_bytes;
  const std::int64_t full_pieces = parts_of(bytes, piece_bytes) - 1;
  const std::int64_t packets = full_pieces * parts_of(piece_bytes, payload_bytes) +
                               parts_of(bytes - full_pieces * piece_bytes, payload_bytes);
  const std::uint32_t hops = distances_.at_least(from, to);
  const double packet_hops = static_cast<double>(packets) * hops;
  return {packet_hops, traits_.forwards_by_software && hops > 1 ? packet_hops : 0.0};
}

}  // namespace apenet
