#include "machine/message_costs.hpp"

#include <algorithm>
#include <variant>

namespace apenet {

message::SoftwareCosts message_costs(const MachineDescription& description) {
  const SoftwareDescription& software = description.mpi_software;
  message::SoftwareCosts costs;
  costs.send_ps = software.send.ps();
  costs.send_packet_ps = software.send_packet.ps();
  costs.receive_packet_ps = software.receive_packet.ps();
  costs.receive_ps = software.receive.ps();
  costs.after_receive_ps = software.after_receive.ps();
  costs.completion_ps = software.completion.ps();
  costs.rendezvous_ps = software.rendezvous.ps();
  costs.publish_ps = software.publish.ps();
  costs.poll_ps = software.poll.ps();
  costs.clock_read_ps = software.clock_read.ps();
  costs.eager_limit_bytes = software.eager_limit_bytes;
  costs.copy_bytes_per_second = description.host.copy_bytes_per_second;
  return costs;
}

bool translates_addresses(const MachineDescription& description) {
  return std::holds_alternative<ApelinkPlusDescription>(description.nic);
}

message::CardLimits message_limits(const NicCapabilities& card) {
  message::CardLimits limits;
  limits.needs_credit = card.needs_credit ? 1 : 0;
  limits.max_pio_bytes = card.max_pio_bytes;
  limits.max_message_bytes = std::min(card.max_message_bytes, message::most_bytes);
  limits.max_send_bytes = card.max_send_bytes;
  limits.send_packet_bytes = card.send_packet_bytes;
  return limits;
}

}  // namespace apenet
