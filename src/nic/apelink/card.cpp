#include "nic/apelink/card.hpp"

#include "kernel/refuse.hpp"
#include "nic/apelink/transmitter.hpp"

namespace apenet::apelink {

void validate_common(const CommonDescription& card) {
  require_at_least("card.max_payload_bytes", card.max_payload_bytes, card.granule_bytes);
  if (card.max_payload_bytes % card.granule_bytes != 0) {
    refuse_value("card.max_payload_bytes", std::to_string(card.max_payload_bytes),
                 "a multiple of card.granule_bytes = " + std::to_string(card.granule_bytes));
  }
  constexpr std::int64_t max_packets = std::int64_t{1} << 31;  // limit of Packet::sequence
  require_at_least("card.max_message_bytes", card.max_message_bytes, card.max_payload_bytes);
  require_at_most("card.max_message_bytes", card.max_message_bytes, max_packets * card.max_payload_bytes);
  require_at_most("card.queues", card.queues, Transmitter::max_queues / card.ports,
                  " (64 over card.ports = " + std::to_string(card.ports) + ")");
}

CardTraits common_traits(const CommonDescription& card, const HostDescription& host) {
  return {.capabilities = {.put = true,
                           .get = true,
                           .max_message_bytes = card.max_message_bytes,
                           .max_send_bytes = card.max_message_bytes,
                           .max_pio_bytes = card.max_pio_bytes,
                           .interrupt = card.get_service,
                           .channels = static_cast<std::uint16_t>(card.queues),
                           .peer_queues = static_cast<std::uint16_t>(card.queues)},
          .network_channels = static_cast<std::uint32_t>(card.queues),
          .max_injection_fifos = card.queues,
          .injection_fifos_reason = ", card.queues",
          .shares_channels_out = true,
          .queues_are = "those of card.queues: the library gives each direction one",
          .max_packet_wire_bytes = card.header_bytes + card.max_payload_bytes + card.footer_bytes,
          .packet_overhead_bytes = card.header_bytes + card.footer_bytes,
          .max_processes = card.ports,
          .max_processes_key = "card.ports",
          .doorbell_delay = host.bus.pio_write_latency};
}

void append_counters(const Counters& counted, std::vector<Counter>& counters) {
  counters.push_back({"packets", counted.packets});
  counters.push_back({"acknowledgements", counted.acknowledgements});
  counters.push_back({"descriptors_held_back", counted.descriptors_held_back});
  counters.push_back({"gets_served", counted.gets_served});
}

void append_warnings(const Counters& counted, const std::string& name, std::vector<std::string>& warnings) {
  if (counted.gets_served > 0) {
    warnings.push_back(std::to_string(counted.gets_served) +
                       " gets were served by the driver at the target: " + name +
                       " has no published hardware get, card.get_service_us is assumed");
  }
  if (counted.acknowledgements > 0) {
    warnings.push_back(std::to_string(counted.acknowledgements) +
                       " remote completions were acknowledged by a packet of the target's card: this is "
                       "assumed, no acknowledgement of " +
                       name + " is published");
  }
}

}  // namespace apenet::apelink
