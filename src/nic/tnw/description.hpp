// The torus network processor as plain data, in base units; each field is a key of [card] in the machine
// files.
#pragma once

#include <cstdint>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"

namespace apenet {

struct TnwDescription {
  Time put_latency;     // DMA out of local store: post to the card; the lookahead of the simulation
  Time notify_latency;  // from the CPU links to where the processor looks
  Time operation;       // of the processor path: each put, credit and delivery, beside its packets
  std::int64_t cpu_links = 2;
  DataRate cpu_link_rate;  // of each of them; a packet is spread over all
  std::int64_t packet_bytes = 128;
  std::int64_t header_bytes = 0;                   // of a packet on the link
  std::int64_t message_header_bytes = 0;           // beside it, of the first packet of a message
  std::int64_t acknowledgement_bytes = 0;          // on the link in the opposite direction, for each packet
  std::int64_t message_acknowledgement_bytes = 0;  // instead, for the last packet of a message
  std::int64_t max_message_bytes = 2048;
  std::int64_t channels = 8;  // virtual channels of a link
  std::int64_t ports = 8;
  std::int64_t receive_buffer_packets = 0;  // of the receiving card, per link and virtual channel
  std::int64_t ring_bytes = 0;  // credit that a message-passing library gives each sender before it begins
  Time forward_service;         // software at a node takes a message that goes on, or came so
};

}  // namespace apenet
