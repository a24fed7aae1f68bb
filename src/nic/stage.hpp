// Stage: what a message is doing on its way, for reports of where time goes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace apenet {

// What the last packet of a message does; before it is made, the message. Components enter stages in the
// order of time (MessageTable::enter).
enum class Stage : std::uint8_t {
  doorbell,         // the processor's writes to the card
  card_queue,       // behind other messages or packets in the card
  card,             // the engines of the two cards
  bus_busy,         // other transfers have the bus
  bus,              // a transfer of its own
  queue_full,       // no place in the FIFO from the card into the network
  links,            // in the network: latencies and transmission
  link_busy,        // a link or port carries other packets
  credits,          // the link is free, but no buffer behind it, or a packet before it is held up
  retransmission,   // after bit errors and faults
  translation,      // a page walk, or a fetch of a connection's context
  receiver_full,    // no receive request, place or credit at the receiver
  acknowledgement,  // delivered; its sender does not know it yet
  interrupt,        // in memory, before the interrupt by which its process learns it
  memory_busy,      // within a node: other copies have the memory
  memory_copy,      // within a node: the copy and its hand-over
};
inline constexpr std::array<const char*, 16> stage_names = {
    "doorbell",        "card queue", "card",        "bus busy",       "bus",         "queue full",
    "links",           "link busy",  "credits",     "retransmission", "translation", "receiver full",
    "acknowledgement", "interrupt",  "memory busy", "memory copy"};
static_assert(static_cast<std::size_t>(Stage::memory_copy) + 1 == stage_names.size());

}  // namespace apenet
