// What the parts of a TNW card share: its environment, and how a message is split into packets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernel/queue_pool.hpp"
#include "nic/card_environment.hpp"
#include "nic/tnw/description.hpp"
#include "nic/tnw/next_hops.hpp"

namespace apenet::tnw {

// Totals of all cards of a machine.
struct Counters {
  std::uint64_t packets = 0;           // packets of messages, counted at every hop
  std::uint64_t acknowledgements = 0;  // one per packet
  std::uint64_t credits = 0;
  std::uint64_t waits_for_credit = 0;  // messages that arrived before their credit
  std::uint64_t strangers = 0;         // messages to strangers: nodes that are not neighbours
  std::uint64_t forwards = 0;          // times that software forwarded such a message
  std::uint64_t confirmed = 0;         // remote completions of messages to strangers
};

// The purpose of a packet. It is stored in the low bits of Packet::message.
enum class Role : std::uint8_t {
  data,
  confirm,       // sent by software: a message of a stranger is complete
  acknowledged,  // a packet has left the receive buffer
  completed      // the same, for the last packet of a message with want_remote
};

// A message that is being sent over one link.
struct QueuedMessage {
  MessageId id = 0;
  Role role = Role::data;
  std::uint64_t number = 0;  // in the order of doorbells
  Time there;                // when its next packet could cross the links
};

struct Credit {
  ProcessId receiver = 0;
  ProcessId sender = 0;
  std::uint16_t channel = 0;
  std::int64_t bytes = 0;
  std::uint64_t number = 0;
  Time there;
};

// A packet in the receive buffer.
struct Arrival {
  Packet packet;
  std::uint64_t number = 0;  // in the order of arrival
  Time there;
};

// What the cards of a machine share: environment, parameters, and the memory of their queues.
struct Cards : CardEnvironment<Description> {
  static constexpr std::uint32_t links = 6;  // per node: QPACE has six, for three dimensions

  Cards(const Description& card, const CardSurroundings& surroundings)
      : CardEnvironment(card, surroundings), hops(surroundings.wiring.topology, links) {}

  NextHops hops;
  Time packet_time = description.cpu_link_rate.duration(description.packet_bytes);
  // Initial credit of every process for every other one, on the channel of receive rings.
  std::int64_t first_credit_bytes = 0;
  struct State {
    QueuePool<QueuedMessage> entries;
    QueuePool<Credit> credits;
    QueuePool<Arrival> arrivals;
    QueuePool<Packet> acknowledgements;
    QueuePool<MessageId> waiting;
  };
  State state = {};
  Counters counters = {};

  // The virtual channels of a link plus one for messages that software forwards, so that a message that waits
  // for credit never blocks a forwarded one.
  [[nodiscard]] std::uint16_t lanes() const { return static_cast<std::uint16_t>(description.channels + 1); }
  [[nodiscard]] std::uint16_t forward_lane() const {
    return static_cast<std::uint16_t>(description.channels);
  }
  // Libraries that keep receive rings have credits of their own; their messages use virtual channel 0.
  [[nodiscard]] bool is_ring(std::uint16_t channel) const { return channel == description.channels; }
  // The virtual channel of a process's messages. The cores that share a card use different ones.
  [[nodiscard]] std::uint16_t lane_of(ProcessId sender, std::uint16_t channel) const {
    return static_cast<std::uint16_t>((channel + placement.port(sender)) % description.channels);
  }
};

struct Card {
  Cards& all;
  NodeId node;
  struct State {
    EventSource source;  // source of all events of this card
  };
  State state;
  std::vector<NodeId> neighbours;  // indexed by link

  [[nodiscard]] Time now() const { return all.simulation.now(); }
  // The link to a neighbour, or Cards::links if the node is not a neighbour.
  [[nodiscard]] std::uint32_t link_to(NodeId node_there) const {
    const auto found = std::find(neighbours.begin(), neighbours.end(), node_there);
    return found == neighbours.end() ? Cards::links : static_cast<std::uint32_t>(found - neighbours.begin());
  }
};

[[nodiscard]] constexpr std::uint64_t packet_message(MessageId id, std::uint16_t lane, Role role) {
  return std::uint64_t{id} << 8U | std::uint64_t{lane} << 2U | static_cast<std::uint64_t>(role);
}
[[nodiscard]] constexpr MessageId message_of(const Packet& packet) {
  return static_cast<MessageId>(packet.message >> 8U);
}
[[nodiscard]] constexpr std::uint16_t lane_of(const Packet& packet) {
  return static_cast<std::uint16_t>(packet.message >> 2U & 63U);
}
[[nodiscard]] constexpr Role role_of(const Packet& packet) {
  return static_cast<Role>(packet.message & 3U);
}

// A message without payload takes one packet.
[[nodiscard]] constexpr std::uint32_t packets_of(const Description& card, std::int64_t bytes) {
  return static_cast<std::uint32_t>(
      std::max<std::int64_t>(1, (bytes + card.packet_bytes - 1) / card.packet_bytes));
}
// The credit that a message uses up at its receiver.
[[nodiscard]] constexpr std::int64_t credit_of(std::int64_t bytes) {
  return std::max<std::int64_t>(1, bytes);
}

}  // namespace apenet::tnw
