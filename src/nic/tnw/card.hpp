// What the parts of a TNW card share: its surroundings and how a message becomes packets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernel/queue_pool.hpp"
#include "kernel/simulation.hpp"
#include "network/network.hpp"
#include "nic/messages.hpp"
#include "nic/placement.hpp"
#include "nic/tnw/description.hpp"
#include "nic/tnw/grid.hpp"

namespace apenet {

// What the cards of a machine did, all together.
struct TnwCounters {
  std::uint64_t packets = 0;           // of messages, at every hop
  std::uint64_t acknowledgements = 0;  // of these
  std::uint64_t credits = 0;
  std::uint64_t waits_for_credit = 0;  // messages that came before their credit
  std::uint64_t strangers = 0;         // messages to nodes that are no neighbours
  std::uint64_t forwards = 0;          // times that software sent such a message on
  std::uint64_t confirmed = 0;         // strangers' remote completions
};

// What a packet is for. It travels in the low bits of Packet::message.
enum class TnwRole : std::uint8_t {
  data,
  confirm,       // software tells a stranger that its message is complete
  acknowledged,  // of one packet: it has left the receive buffer
  completed      // the same, of the last packet of a message whose source wants to know
};

// A message on its way out over one link.
struct TnwEntry {
  MessageId id = 0;
  TnwRole role = TnwRole::data;
  std::uint64_t number = 0;  // in the order of the doorbells
};

struct TnwCredit {
  ProcessId receiver = 0;
  ProcessId sender = 0;
  std::uint16_t channel = 0;
  std::int64_t bytes = 0;
  std::uint64_t number = 0;
};

// A packet in the receive buffer.
struct TnwArrival {
  Packet packet;
  std::uint64_t number = 0;  // in the order of arrival
};

// What the cards of a machine share: surroundings, numbers, and the memory of their queues.
struct TnwCards {
  static constexpr std::uint32_t links = 6;  // of a node: QPACE has six, for three dimensions

  Simulation& simulation;
  Network& network;
  MessageTable& messages;
  const Placement& placement;
  TnwGrid grid;
  TnwDescription description;
  Time packet_time = DataRate{description.cpu_link_rate.bytes * description.cpu_links,
                              description.cpu_link_rate.per_cycles, description.cpu_link_rate.frequency_hz}
                         .duration(description.packet_bytes);
  std::int64_t first_credit_bytes = 0;  // that every process has given to every other from the beginning
  TnwCounters counters = {};
  QueuePool<TnwEntry> entries = {};
  QueuePool<TnwCredit> credits = {};
  QueuePool<TnwArrival> arrivals = {};
  QueuePool<Packet> acknowledgements = {};
  QueuePool<MessageId> waiting = {};

  // Virtual channels of a link, and one more for what software forwards: a message that waits for its credit
  // is never in the way of one that only passes through.
  [[nodiscard]] std::uint16_t lanes() const { return static_cast<std::uint16_t>(description.channels + 1); }
  [[nodiscard]] std::uint16_t forward_lane() const {
    return static_cast<std::uint16_t>(description.channels);
  }
  // The virtual channel of a process's messages: each of the cores that share a card has its own.
  [[nodiscard]] std::uint16_t lane_of(ProcessId sender, std::uint16_t channel) const {
    return static_cast<std::uint16_t>((channel + placement.port(sender)) % description.channels);
  }
};

struct TnwCard {
  TnwCards& all;
  NodeId node;
  EventSource source;              // of every event of this card
  std::vector<NodeId> neighbours;  // by the number of their link

  [[nodiscard]] Time now() const { return all.simulation.now(); }
  // The number of the link to a neighbour; TnwCards::links for a stranger.
  [[nodiscard]] std::uint32_t link_to(NodeId node_there) const {
    const auto found = std::find(neighbours.begin(), neighbours.end(), node_there);
    return found == neighbours.end() ? TnwCards::links
                                     : static_cast<std::uint32_t>(found - neighbours.begin());
  }
};

[[nodiscard]] constexpr std::uint64_t tnw_message(MessageId id, std::uint16_t lane, TnwRole role) {
  return std::uint64_t{id} << 8U | std::uint64_t{lane} << 2U | static_cast<std::uint64_t>(role);
}
[[nodiscard]] constexpr MessageId tnw_id(const Packet& packet) {
  return static_cast<MessageId>(packet.message >> 8U);
}
[[nodiscard]] constexpr std::uint16_t tnw_lane(const Packet& packet) {
  return static_cast<std::uint16_t>(packet.message >> 2U & 63U);
}
[[nodiscard]] constexpr TnwRole tnw_role(const Packet& packet) {
  return static_cast<TnwRole>(packet.message & 3U);
}

// A message without payload is a packet, too.
[[nodiscard]] constexpr std::uint32_t packets_of(const TnwDescription& card, std::int64_t bytes) {
  return static_cast<std::uint32_t>(
      std::max<std::int64_t>(1, (bytes + card.packet_bytes - 1) / card.packet_bytes));
}
// What a message takes of its receiver's credit.
[[nodiscard]] constexpr std::int64_t credit_of(std::int64_t bytes) {
  return std::max<std::int64_t>(1, bytes);
}

}  // namespace apenet
