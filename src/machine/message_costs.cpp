#include "machine/message_costs.hpp"

#include <algorithm>

#include "kernel/rate.hpp"
#include "machine/rails.hpp"

namespace apenet {

message::SoftwareCosts message_costs(const MachineDescription& description, SoftwareLayer layer) {
  message::SoftwareCosts costs =
      layer == SoftwareLayer::mpi ? description.mpi_software : description.card_software;
  costs.copy_bytes_per_second = description.host.copy_bytes_per_second;
  costs.gpu_copy_latency = description.host.gpu_copy_latency;
  costs.gpu_copy_bytes_per_second = description.host.gpu_copy_bytes_per_second;
  return costs;
}

message::CardLimits message_limits(const Machine& machine, std::uint8_t rail, SoftwareLayer layer) {
  const NicCapabilities& card = machine.capabilities(rail);
  const MachineDescription description = rail_alone(machine.description(), rail);
  const message::SoftwareCosts costs = message_costs(description, layer);
  message::CardLimits limits;
  limits.needs_credit = card.needs_credit ? 1 : 0;
  limits.reaches_gpus = card.gpu_memory ? 1 : 0;
  limits.max_pio_bytes = cpu_send_limit(machine, costs, costs.copy_bytes_per_second, rail);
  limits.max_message_bytes = std::min(card.max_message_bytes, message::most_bytes);
  limits.max_send_bytes = card.max_send_bytes;
  limits.send_packet_bytes = card.send_packet_bytes;
  limits.mailbox_packets = card.mailbox_packets;
  // What an interrupt of the card tells a process has woken it already.
  limits.interrupt = description.interrupts.is_on() ? Time::zero() : card.interrupt;
  limits.loops_back = description.same_node.way == SameNodeDescription::Way::card ? 1 : 0;
  return limits;
}

std::int64_t cpu_send_limit(const Machine& machine, const message::SoftwareCosts& costs,
                            std::int64_t copy_bytes_per_second, std::uint8_t rail) {
  const NicCapabilities& card = machine.capabilities(rail);
  if (card.send_packet_bytes == 0) return card.max_pio_bytes;
  std::int64_t limit = 0;
  while (limit < card.max_pio_bytes) {
    const std::int64_t bytes = std::min(limit + card.send_packet_bytes, card.max_pio_bytes);
    const SendTimes times = machine.send_times(bytes, costs.send_packet, rail);
    const Time read_by_library = costs.further_receives(library_packets(card.send_packet_bytes, bytes));
    const Time copy = copy_bytes_per_second == 0
                          ? Time::zero()
                          : DataRate::bytes_per_second(copy_bytes_per_second).duration(bytes);
    if (times.by_cpu + read_by_library > times.by_card + copy) break;
    limit = bytes;
  }
  return limit;
}

}  // namespace apenet
