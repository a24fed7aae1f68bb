// What the receiving halves of a machine's APEnet+ cards share.
#pragma once

#include <cstdint>
#include <vector>

#include "nic/apelink/card.hpp"
#include "nic/apelink_plus/description.hpp"

namespace apenet::apelink_plus {

struct Counters {
  std::uint64_t tlb_hits = 0;  // counted in pages
  std::uint64_t page_walks = 0;
  std::uint64_t gpu_writes = 0;  // counted in packets
};

// A packet, and the time at which its target address is translated.
struct Arrival {
  Packet packet;
  Time translated;
};

// A packet that a receive engine is writing.
struct Write {
  Packet packet;
  std::int64_t bytes = 0;  // payload
  Memory memory = Memory::host;
  std::uint32_t engine = 0;
  Time begin;  // begin of the transfer, when the engine is set up
};

// An event that waits until all payload before it is visible.
struct WaitingEvent {
  std::uint8_t about = 0;
  MessageId id = 0;
  Numbering<std::uint64_t> gpu_writes_before;
};

struct Cards {
  Description description;
  GpuKind gpu;
  struct State {
    QueuePool<Arrival> arrivals;
    QueuePool<WaitingEvent> events;
    Slab<Write> writes;
    // Offset in the ring of a message without an address, indexed by MessageId.
    std::vector<std::uint64_t> ring_offset;
  };
  State state = {};
  Counters counters = {};
};

}  // namespace apenet::apelink_plus
