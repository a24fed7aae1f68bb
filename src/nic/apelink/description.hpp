// The APELink card as plain data, in base units.
#pragma once

#include <cstdint>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"
#include "nic/card_kind.hpp"
#include "schema/fields.hpp"

namespace apenet {

// What the cards of APENet have in common, whatever their generation: descriptor FIFOs, packets, events.
struct ApeCardDescription {
  ClockDomain clock;
  std::int64_t header_bytes = 0;
  std::int64_t footer_bytes = 0;
  std::int64_t granule_bytes = 0;
  std::int64_t max_payload_bytes = 0;
  std::int64_t max_message_bytes = 0;
  std::int64_t queues = 0;
  std::int64_t descriptor_bytes = 0;
  std::int64_t descriptor_cycles = 0;
  std::int64_t descriptor_fifo_entries = 0;
  std::int64_t completion_bytes = 0;
  std::int64_t max_pio_bytes = 0;
  std::int64_t ports = 0;
  Time get_service;
};

inline void list_fields(schema::Fields& fields, ApeCardDescription& card) {
  using namespace schema::ranges;
  fields("clock_mhz", card.clock, positive, "clock of the crossbar and the engines");
  fields("header_bytes", card.header_bytes, count, "header of every packet");
  fields("footer_bytes", card.footer_bytes, count_or_zero, "footer of every packet");
  fields("granule_bytes", card.granule_bytes, count, "a payload is padded to a multiple of it");
  fields("max_payload_bytes", card.max_payload_bytes, count.up_to(1 << 20), "largest payload of a packet");
  fields("max_message_bytes", card.max_message_bytes, size, "largest message of a descriptor");
  fields("queues", card.queues, count, "hardware queues of a port: the channels of a descriptor");
  fields("descriptor_bytes", card.descriptor_bytes, count, "a descriptor, as it crosses the bus");
  fields("descriptor_cycles", card.descriptor_cycles, count_or_zero, "to fetch and decode a descriptor");
  fields("descriptor_fifo_entries", card.descriptor_fifo_entries, count,
         "descriptors that a FIFO holds, of each port and queue");
  fields("completion_bytes", card.completion_bytes, count,
         "event that the card writes to host memory by DMA");
  fields("max_pio_bytes", card.max_pio_bytes, count_or_zero,
         "largest payload that the CPU can write to the card; 0: none");
  fields("ports", card.ports, count, "processes that can share the card");
  fields("get_service_us", card.get_service, not_negative,
         "the driver at the target turns a get request into a put");
}

struct ApelinkDescription : ApeCardDescription {
  static constexpr CardKind kind{"apelink"};
  std::int64_t lookup_cycles = 0;
};

inline void list_fields(schema::Fields& fields, ApelinkDescription& card) {
  using namespace schema::ranges;
  list_fields(fields, static_cast<ApeCardDescription&>(card));
  fields("lookup_cycles", card.lookup_cycles, count_or_zero,
         "to look a buffer up in the published-buffer table");
}

void validate(const ApelinkDescription& card, const HostDescription& host);
[[nodiscard]] CardFacts facts_of(const ApelinkDescription& card, const HostDescription& host);
[[nodiscard]] std::unique_ptr<CardSet> make_set(const ApelinkDescription& card,
                                                const CardSurroundings& surroundings);

}  // namespace apenet
