// The EXTOLL card as plain data, in base units.
#pragma once

#include <cstdint>

#include "kernel/rate.hpp"
#include "nic/card_kind.hpp"
#include "schema/fields.hpp"

namespace apenet::extoll {

struct Description {
  static constexpr CardKind kind{.name = "extoll", .layers = {"velo", "rma"}, .conduit = "extoll"};
  ClockDomain clock;
  std::int64_t header_bytes = 0;
  std::int64_t footer_bytes = 0;
  std::int64_t granule_bytes = 0;
  std::int64_t ports = 0;

  std::int64_t velo_payload_bytes = 0;
  std::int64_t velo_status_bytes = 0;
  std::int64_t velo_max_message_bytes = 0;
  std::int64_t velo_mailbox_entries = 0;
  std::int64_t velo_send_cycles = 0;
  std::int64_t velo_receive_cycles = 0;

  std::int64_t rma_max_message_bytes = 0;
  std::int64_t rma_max_payload_bytes = 0;
  std::int64_t rma_command_bytes = 0;
  std::int64_t rma_header_bytes = 0;
  std::int64_t rma_notification_bytes = 0;
  std::int64_t rma_max_immediate_bytes = 0;
  std::int64_t rma_requester_cycles = 0;
  std::int64_t rma_responder_cycles = 0;
  std::int64_t rma_completer_cycles = 0;
};

inline void list_fields(schema::Fields& fields, Description& card) {
  using namespace schema::ranges;
  fields("clock_mhz", card.clock, positive, "clock of the engines");
  fields("header_bytes", card.header_bytes, count, "header of every packet: route, nodes, ports, type");
  fields("footer_bytes", card.footer_bytes, count_or_zero, "checksum and framing of every packet");
  fields("granule_bytes", card.granule_bytes, count,
         "everything after the header is padded to a multiple of it");
  fields("ports", card.ports, count,
         "processes that can share the card: each has a mailbox and a queue of RMA commands");

  fields("velo_payload_bytes", card.velo_payload_bytes, count.up_to(1 << 16),
         "payload of a VELO packet and of a mailbox slot");
  fields("velo_status_bytes", card.velo_status_bytes, count, "status beside the payload, in packet and slot");
  fields("velo_max_message_bytes", card.velo_max_message_bytes, count.up_to(1 << 20),
         "largest message that the library sends as a train of VELO packets");
  fields("velo_mailbox_entries", card.velo_mailbox_entries, count, "slots in the mailbox of a process");
  fields("velo_send_cycles", card.velo_send_cycles, count_or_zero,
         "time of the VELO requester for each packet");
  fields("velo_receive_cycles", card.velo_receive_cycles, count_or_zero,
         "time of the VELO completer for each packet");

  fields("rma_max_message_bytes", card.rma_max_message_bytes, size, "largest message of an RMA command");
  fields("rma_max_payload_bytes", card.rma_max_payload_bytes, count.up_to(1 << 20),
         "largest payload of an RMA packet");
  fields("rma_command_bytes", card.rma_command_bytes, count,
         "size of an RMA command; a get sends it to the responder");
  fields("rma_header_bytes", card.rma_header_bytes, count_or_zero,
         "further header of an RMA packet with payload");
  fields("rma_notification_bytes", card.rma_notification_bytes, count, "size of a notification in memory");
  fields("rma_max_immediate_bytes", card.rma_max_immediate_bytes, count_or_zero,
         "largest payload inside the RMA command");
  fields("rma_requester_cycles", card.rma_requester_cycles, count_or_zero,
         "time of the RMA requester for each command");
  fields("rma_responder_cycles", card.rma_responder_cycles, count_or_zero,
         "time of the RMA responder for each request and each acknowledgement");
  fields("rma_completer_cycles", card.rma_completer_cycles, count_or_zero,
         "time of the RMA completer for each packet");
}

void validate(const Description& card);
[[nodiscard]] CardTraits traits_of(const Description& card, const HostDescription& host);
[[nodiscard]] std::unique_ptr<CardSet> make_set(const Description& card,
                                                const CardSurroundings& surroundings);

}  // namespace apenet::extoll
