// The EXTOLL card as plain data, in base units; each field is a key of [card] in the machine files.
#pragma once

#include <cstdint>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"

namespace apenet {

struct ExtollDescription {
  ClockDomain clock;              // of the engines
  std::int64_t header_bytes = 8;  // of every packet: route, nodes, ports, type
  std::int64_t footer_bytes = 8;  // checksum and framing
  std::int64_t granule_bytes = 4;
  std::int64_t ports = 16;  // processes: each has a mailbox and a queue of RMA commands

  std::int64_t velo_payload_bytes = 56;     // of a packet and of a slot
  std::int64_t velo_status_bytes = 8;       // beside it, in both
  std::int64_t velo_max_message_bytes = 0;  // that the library sends as a train of packets
  std::int64_t velo_mailbox_entries = 0;    // slots of a process
  std::int64_t velo_send_cycles = 0;        // of the requester, each packet
  std::int64_t velo_receive_cycles = 0;     // of the completer, each packet

  std::int64_t rma_max_message_bytes = 0;    // per command
  std::int64_t rma_max_payload_bytes = 0;    // per packet
  std::int64_t rma_command_bytes = 24;       // as the CPU writes it, and as a get travels to the responder
  std::int64_t rma_header_bytes = 16;        // of a packet with payload, beside header_bytes
  std::int64_t rma_notification_bytes = 16;  // as it is written to memory
  std::int64_t rma_max_immediate_bytes = 8;  // payload in the command itself
  std::int64_t rma_requester_cycles = 0;     // each command
  std::int64_t rma_responder_cycles = 0;     // each request, and each acknowledgement
  std::int64_t rma_completer_cycles = 0;     // each packet
};

}  // namespace apenet
