// What the parts of a host channel adapter share: its surroundings, the connections, and the form of packets.
#pragma once

#include <algorithm>
#include <cstdint>

#include "host/bus.hpp"
#include "kernel/queue_pool.hpp"
#include "kernel/simulation.hpp"
#include "network/network.hpp"
#include "nic/hca/connection.hpp"
#include "nic/hca/description.hpp"
#include "nic/messages.hpp"
#include "nic/placement.hpp"
#include "nic/slab.hpp"
#include "nic/tag.hpp"

namespace apenet::hca {

// What the cards of a machine did, all together.
struct Statistics {
  std::uint64_t packets = 0;           // injected, of every role
  std::uint64_t acknowledgements = 0;  // of them
  std::uint64_t not_ready = 0;         // of them: the target had no receive work request
  std::uint64_t refused_packets = 0;   // not taken because of that, and sent again
  std::uint64_t posts_held_back = 0;   // found the send queue full
  std::uint64_t reads_held_back = 0;   // found outstanding_rdma_reads under way
  std::uint64_t reads_served = 0;      // by the target's card
  std::uint64_t context_misses = 0;
};

// What a packet is for.
enum class Role : std::uint8_t { request, read_request, read_response, acknowledgement, not_ready };

// A packet on its way from the card's scheduler into the network.
struct Pending {
  Packet packet;
  bool needs_data = false;
};

// An entry of a connection's send queue that crosses the bus to the card.
struct EntryName {
  ConnectionId connection = 0;
  std::uint32_t number = 0;
};

// A message whose completion queue entry is being written at the target.
struct InboundName {
  ConnectionId connection = 0;
  MessageId id = 0;
};

// A packet that only the card makes: acknowledgement or not_ready.
struct Control {
  ConnectionId connection = 0;
  Role role = Role::acknowledgement;
};

// Whose turn it is to send a packet: requests of a connection, or what it was asked to read.
struct Stream {
  ConnectionId connection = 0;
  bool is_response = false;
};

struct Arrival {
  Packet packet;
  Time head_time;
};

// What the cards of a machine share: surroundings, numbers, and the memory of their queues.
struct Cards {
  Simulation& simulation;
  Network& network;
  MessageTable& messages;
  const Placement& placement;
  HcaDescription description;
  std::uint32_t bus_reads;  // payload reads under way on a bus, at most
  Statistics counters = {};
  ConnectionTable connections = {};
  QueuePool<Work> works = {};
  QueuePool<Inbound> inbound = {};
  QueuePool<MessageId> reads_to_serve = {};
  QueuePool<Pending> pending = {};
  QueuePool<EntryName> entries = {};
  QueuePool<Control> controls = {};
  QueuePool<Stream> streams = {};
  QueuePool<Arrival> arrivals = {};
  QueuePool<std::uint16_t> payload_reads = {};
  Slab<Packet> being_written = {};
  Slab<InboundName> inbound_names = {};
};

struct Card {
  Cards& all;
  Bus& bus;
  NodeId node;
  EventSource source;  // of every event of this card

  [[nodiscard]] Time now() const { return all.simulation.now(); }
  // The latency of a processor's write includes its bus clocks: on an idle bus they are over now.
  void written_by_processor(std::int64_t bytes, BusClient& client, std::uint64_t tag) {
    const Time clocks = std::min(bus.occupancy(bytes), now());
    bus.write(Bus::Master::processor, bytes, now() - clocks, client, tag);
  }
};

// Packet::message: what its header says.
struct Header {
  MessageId id = 0;  // of request, read_request and read_response
  ConnectionId connection = 0;
  Role role = Role::request;
  bool asks_ack = false;
};
static_assert(ConnectionTable::max_connections <= std::uint64_t{1} << 28U);

[[nodiscard]] constexpr std::uint64_t encode(const Header& header) {
  return std::uint64_t{header.id} << 32U | std::uint64_t{header.connection} << 4U |
         (header.asks_ack ? 8U : 0U) | static_cast<std::uint64_t>(header.role);
}
[[nodiscard]] constexpr Header header_of(const Packet& packet) {
  return {.id = static_cast<MessageId>(packet.message >> 32U),
          .connection = static_cast<ConnectionId>(packet.message >> 4U & 0xfffffffU),
          .role = static_cast<Role>(packet.message & 7U),
          .asks_ack = (packet.message & 8U) != 0};
}

// Bytes of the message that packet number `sequence` carries, without padding.
[[nodiscard]] constexpr std::int64_t payload_of(const HcaDescription& card, std::int64_t message_bytes,
                                                std::uint32_t sequence) {
  return std::min(card.mtu_bytes, message_bytes - std::int64_t{sequence} * card.mtu_bytes);
}
[[nodiscard]] constexpr std::uint32_t packets_of(const HcaDescription& card, std::int64_t message_bytes) {
  return static_cast<std::uint32_t>(
      std::max<std::int64_t>(1, (message_bytes + card.mtu_bytes - 1) / card.mtu_bytes));
}

// Fills in the sizes: `extended` are the headers beside those of every packet.
inline void set_sizes(Packet& packet, const HcaDescription& card, std::int64_t payload,
                      std::int64_t extended) {
  const std::int64_t padded = (payload + card.granule_bytes - 1) / card.granule_bytes * card.granule_bytes;
  packet.payload_bytes = static_cast<std::uint32_t>(padded);
  packet.wire_bytes = static_cast<std::uint32_t>(card.header_bytes + extended + padded + card.trailer_bytes);
}

}  // namespace apenet::hca
