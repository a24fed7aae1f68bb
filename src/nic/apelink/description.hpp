// The APELink card as plain data, in base units; each field is a key of [card] in the machine files.
#pragma once

#include <cstdint>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"

namespace apenet {

// What the cards of APENet have in common, whatever their generation: descriptor FIFOs, packets, events.
struct ApeCardDescription {
  ClockDomain clock;  // crossbar
  std::int64_t header_bytes = 8;
  std::int64_t footer_bytes = 8;
  std::int64_t granule_bytes = 16;
  std::int64_t max_payload_bytes = 256;      // per packet
  std::int64_t max_message_bytes = 0;        // per descriptor
  std::int64_t queues = 4;                   // hardware queues: the channels of a descriptor
  std::int64_t descriptor_bytes = 32;        // one entry of the descriptor FIFO, as it crosses the bus
  std::int64_t descriptor_cycles = 0;        // fetch and decode one entry of the descriptor FIFO
  std::int64_t descriptor_fifo_entries = 0;  // per port and queue
  std::int64_t completion_bytes = 16;        // event written to host memory, by DMA
  std::int64_t max_pio_bytes = 0;
  std::int64_t ports = 4;
  Time get_service;  // driver at the target turns a get request into a put
};

struct ApelinkDescription : ApeCardDescription {
  std::int64_t lookup_cycles = 0;  // published-buffer table
};

}  // namespace apenet
