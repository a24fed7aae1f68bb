// The torus network processor as plain data, in base units.
#pragma once

#include <cstdint>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"
#include "nic/card_kind.hpp"
#include "schema/fields.hpp"

namespace apenet::tnw {

struct Description {
  static constexpr CardKind kind{.name = "tnw", .has_bus = false, .layers = {"tnw"}};
  Time put_latency;  // the lookahead of the simulation
  Time notify_latency;
  Time operation;
  Time credit;
  DataRate cpu_link_rate;
  std::int64_t packet_bytes = 0;
  std::int64_t header_bytes = 0;
  std::int64_t control_bytes = 0;
  std::int64_t max_message_bytes = 0;
  std::int64_t channels = 0;
  std::int64_t ports = 0;
  std::int64_t receive_buffer_packets = 0;
  std::int64_t ring_bytes = 0;
  Time forward_service;
};

inline void list_fields(schema::Fields& fields, Description& card) {
  using namespace schema::ranges;
  constexpr std::int64_t mib = 1 << 20;
  fields("put_latency_ns", card.put_latency, positive,
         "DMA out of the local store: from the post to the card");
  fields("notify_latency_ns", card.notify_latency, not_negative,
         "from the CPU links to the memory that the processor polls");
  fields("operation_ns", card.operation, not_negative,
         "time on the processor path of each put and delivery, beside its packets");
  fields("credit_ns", card.credit, not_negative,
         "time on the processor path of posting a credit, of whatever size");
  fields("cpu_link_bandwidth_mb_s", card.cpu_link_rate, positive,
         "rate of the CPU link that a packet crosses, in one direction");
  fields("packet_bytes", card.packet_bytes, count.up_to(mib), "largest payload of a packet");
  fields("header_bytes", card.header_bytes, count_or_zero.up_to(mib), "header of a packet on the link");
  fields(
      "control_bytes", card.control_bytes, count.up_to(mib),
      "acknowledgement of a packet, on the link in the opposite direction; and further header of the first "
      "packet of a message");
  fields("max_message_bytes", card.max_message_bytes, count.up_to(mib), "largest message of a put");
  fields("channels", card.channels, count, "virtual channels of a link");
  fields("ports", card.ports, count, "processes that can share the card");
  fields("receive_buffer_packets", card.receive_buffer_packets, count.up_to(mib),
         "capacity of the receiving card, for each link and virtual channel");
  fields("ring_bytes", card.ring_bytes, count.up_to(mib),
         "credit that a message-passing library gives each sender at the start");
  fields("forward_service_us", card.forward_service, not_negative,
         "time in which a node's software takes a message that it forwards, or that was forwarded to it");
}

void validate(const Description& card);
[[nodiscard]] CardTraits traits_of(const Description& card, const HostDescription& host);
[[nodiscard]] std::unique_ptr<CardSet> make_set(const Description& card,
                                                const CardSurroundings& surroundings);

}  // namespace apenet::tnw
