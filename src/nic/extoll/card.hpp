// What the parts of an EXTOLL card share: its surroundings and how a message becomes packets.
#pragma once

#include <algorithm>
#include <cstdint>

#include "host/bus.hpp"
#include "kernel/queue_pool.hpp"
#include "kernel/simulation.hpp"
#include "network/network.hpp"
#include "nic/extoll/description.hpp"
#include "nic/messages.hpp"
#include "nic/placement.hpp"
#include "nic/slab.hpp"
#include "nic/tag.hpp"

namespace apenet::extoll {

// What the cards of a machine did, all together; the report says which of it is assumed rather than
// published.
struct Counters {
  std::uint64_t packets = 0;             // injected, of every role
  std::uint64_t velo_packets = 0;        // of them
  std::uint64_t acknowledgements = 0;    // of them, those for remote_done
  std::uint64_t gets_served = 0;         // by responders
  std::uint64_t packets_held_back = 0;   // VELO packets that found their mailbox full
  std::uint64_t trains_reassembled = 0;  // times a mailbox was full of beginnings
};

// What a packet is for. It travels in the low bits of Packet::message, the card's own number.
enum class Role : std::uint8_t { velo = 0, put = 1, get_request = 2, get_response = 3, acknowledgement = 4 };

// Channels of the network: messages, requests, and what answers requests, so that none waits behind another.
enum class Channel : std::uint16_t { velo = 0, request = 1, response = 2 };
inline constexpr std::uint32_t channels = 3;

// A command in a queue of the requester or the responder.
struct Command {
  MessageId id = 0;
  Role role = Role::put;
};

// A packet on its way from a unit into the network.
struct Pending {
  Packet packet;
  bool needs_data = false;
};

// What a read of payload is for.
struct Read {
  MessageId id = 0;
  bool reports_sent = false;
};

// What the cards of a machine share: surroundings, numbers, and the memory of their queues.
struct Cards {
  Simulation& simulation;
  Network& network;
  MessageTable& messages;
  const Placement& placement;
  ExtollDescription description;
  std::uint32_t outstanding_reads;
  Counters counters = {};
  QueuePool<Command> commands = {};
  QueuePool<MessageId> trains = {};
  QueuePool<Packet> velo_packets = {};
  QueuePool<Pending> pending = {};
  QueuePool<Read> reads = {};
  QueuePool<Packet> waiting = {};
  QueuePool<std::uint32_t> whole_messages = {};
  Slab<Packet> being_written = {};
};

struct Card {
  Cards& all;
  Bus& bus;
  NodeId node;
  EventSource source;  // of every event of this card

  [[nodiscard]] Time now() const { return all.simulation.now(); }
  [[nodiscard]] Time cycles(std::int64_t count) const { return all.description.clock.cycles(count); }
};

// A unit works on one thing at a time: this is when it has done the next, which takes so many cycles.
class Pace {
 public:
  Time take(const Card& card, Time earliest, std::int64_t cycles) {
    return free_at_ = std::max(earliest, free_at_) + card.cycles(cycles);
  }

 private:
  Time free_at_;
};

inline constexpr unsigned role_bits = 3;

[[nodiscard]] constexpr MessageId message_of(const Packet& packet) {
  return static_cast<MessageId>(packet.message >> role_bits);
}
[[nodiscard]] constexpr Role role_of(const Packet& packet) {
  return static_cast<Role>(packet.message & ((1U << role_bits) - 1));
}

// Bytes of the message that packet number `sequence` carries, of packets that carry `packet_bytes` each.
[[nodiscard]] constexpr std::int64_t payload_of(std::int64_t packet_bytes, std::int64_t message_bytes,
                                                std::uint32_t sequence) {
  return std::min(packet_bytes, message_bytes - std::int64_t{sequence} * packet_bytes);
}

// A packet with so many bytes between header and footer, filled up to the granule.
[[nodiscard]] Packet make_packet(const Card& card, MessageId id, Role role, std::int64_t content_bytes);

}  // namespace apenet::extoll
