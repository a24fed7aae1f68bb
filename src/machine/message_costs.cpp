#include "machine/message_costs.hpp"

#include <algorithm>

namespace apenet {

message::SoftwareCosts message_costs(const MachineDescription& description) {
  message::SoftwareCosts costs = description.mpi_software;
  costs.copy_bytes_per_second = description.host.copy_bytes_per_second;
  costs.gpu_copy_latency = description.host.gpu_copy_latency;
  costs.gpu_copy_bytes_per_second = description.host.gpu_copy_bytes_per_second;
  return costs;
}

message::CardLimits message_limits(const NicCapabilities& card) {
  message::CardLimits limits;
  limits.needs_credit = card.needs_credit ? 1 : 0;
  limits.reaches_gpus = card.gpu_memory ? 1 : 0;
  limits.max_pio_bytes = card.max_pio_bytes;
  limits.max_message_bytes = std::min(card.max_message_bytes, message::most_bytes);
  limits.max_send_bytes = card.max_send_bytes;
  limits.send_packet_bytes = card.send_packet_bytes;
  return limits;
}

}  // namespace apenet
