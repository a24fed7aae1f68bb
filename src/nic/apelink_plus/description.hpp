// The APEnet+ card as plain data, in base units; each field is a key of [card] in the machine files.
#pragma once

#include <cstdint>

#include "host/description.hpp"
#include "kernel/time.hpp"
#include "nic/apelink/description.hpp"

namespace apenet {

struct ApelinkPlusDescription : ApeCardDescription {
  std::int64_t page_bytes = 4096;
  std::int64_t tlb_entries = 0;  // fully associative, least recently used; 0: every page is walked for
  Time tlb_hit;
  Time page_walk;                             // translation of a page by the card's soft processor
  std::int64_t receive_engines = 1;           // DMA controllers that write payload
  Time receive_setup;                         // of an engine, for each packet
  std::int64_t max_send_bytes = 0;            // of a message without an address
  std::int64_t receive_ring_bytes = 1 << 16;  // of each process: where those land, one behind the other
  PeerMemoryDescription gpu;                  // without rates: there is none
};

}  // namespace apenet
