// The APELink card as plain data, in base units.
#pragma once

#include <cstdint>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"
#include "nic/card_kind.hpp"
#include "schema/fields.hpp"

namespace apenet::apelink {

// What all generations of APENet cards have in common: descriptor FIFOs, packets, events.
struct CommonDescription {
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

inline void list_fields(schema::Fields& fields, CommonDescription& card) {
  using namespace schema::ranges;
  fields("clock_mhz", card.clock, positive, "clock of the crossbar and the engines");
  fields("header_bytes", card.header_bytes, count, "header of every packet");
  fields("footer_bytes", card.footer_bytes, count_or_zero, "footer of every packet");
  fields("granule_bytes", card.granule_bytes, count, "every payload is padded to a multiple of it");
  fields("max_payload_bytes", card.max_payload_bytes, count.up_to(1 << 20), "largest payload of a packet");
  fields("max_message_bytes", card.max_message_bytes, size, "largest message of a descriptor");
  fields("queues", card.queues, count, "hardware queues of a port: the channels of a descriptor");
  fields("descriptor_bytes", card.descriptor_bytes, count, "size of a descriptor on the bus");
  fields("descriptor_cycles", card.descriptor_cycles, count_or_zero, "time to fetch and decode a descriptor");
  fields("descriptor_fifo_entries", card.descriptor_fifo_entries, count,
         "capacity of a descriptor FIFO; each port has one per queue");
  fields("completion_bytes", card.completion_bytes, count,
         "size of an event, which the card writes to host memory by DMA");
  fields("max_pio_bytes", card.max_pio_bytes, count_or_zero,
         "largest payload that the CPU can write to the card; 0: none");
  fields("ports", card.ports, count, "processes that can share the card");
  fields("get_service_us", card.get_service, not_negative,
         "time in which the driver answers an interrupt: turns a get request into a put, or wakes a process");
}

struct Description : CommonDescription {
  static constexpr CardKind kind{.name = "apelink", .layers = {"rdma"}, .conduit = "apelink"};
  std::int64_t lookup_cycles = 0;
};

inline void list_fields(schema::Fields& fields, Description& card) {
  using namespace schema::ranges;
  list_fields(fields, static_cast<CommonDescription&>(card));
  fields("lookup_cycles", card.lookup_cycles, count_or_zero,
         "time to look up a buffer in the published-buffer table");
}

void validate(const Description& card);
[[nodiscard]] CardTraits traits_of(const Description& card, const HostDescription& host);
[[nodiscard]] std::unique_ptr<CardSet> make_set(const Description& card,
                                                const CardSurroundings& surroundings);

}  // namespace apenet::apelink
