// What the parts of an EXTOLL card share: its environment, and how a message is split into packets.
#pragma once

#include <algorithm>
#include <cstdint>

#include "host/bus.hpp"
#include "kernel/queue_pool.hpp"
#include "nic/card_environment.hpp"
#include "nic/extoll/description.hpp"
#include "nic/slab.hpp"
#include "nic/tag.hpp"

namespace apenet::extoll {

// Totals of all cards of a machine. The report states which of these features are assumed and not published.
struct Counters {
  std::uint64_t packets = 0;             // packets injected, of every role
  std::uint64_t velo_packets = 0;        // part of packets
  std::uint64_t acknowledgements = 0;    // part of packets: for remote_done
  std::uint64_t gets_served = 0;         // by responders
  std::uint64_t packets_held_back = 0;   // VELO packets that found their mailbox full
  std::uint64_t trains_reassembled = 0;  // times a mailbox was full of incomplete messages
};

// The purpose of a packet. It is stored in the low bits of Packet::message, the card's own number.
enum class Role : std::uint8_t { velo = 0, put = 1, get_request = 2, get_response = 3, acknowledgement = 4 };

// Channels of the network. Messages, requests and responses are separate, so that none blocks another.
enum class Channel : std::uint16_t { velo = 0, request = 1, response = 2 };
inline constexpr std::uint32_t channels = 3;

// A command in a queue of the requester or responder.
struct Command {
  MessageId id = 0;
  Role role = Role::put;
  Time there;  // when the unit got it
};

// A packet on its way from a unit to the network.
struct Pending {
  Packet packet;
  bool needs_data = false;
};

// The purpose of a payload read.
struct Read {
  MessageId id = 0;
  bool is_last = false;      // packet of the message
  bool is_reported = false;  // to a process, when the payload has been read
};

// What the cards of a machine share: environment, parameters, and the memory of their queues.
struct Cards : CardEnvironment<Description> {
  using CardEnvironment::CardEnvironment;
  struct State {
    QueuePool<Command> commands;
    QueuePool<MessageId> trains;
    QueuePool<Packet> velo_packets;
    QueuePool<Pending> pending;
    QueuePool<Read> reads;
    QueuePool<Packet> waiting;
    QueuePool<std::uint32_t> whole_messages;
    Slab<Packet> being_written;
  };
  State state = {};
  Counters counters = {};
};

struct Card {
  Cards& all;
  Bus& bus;
  NodeId node;
  struct State {
    EventSource source;  // source of all events of this card
  };
  State state;

  [[nodiscard]] Time now() const { return all.simulation.now(); }
  [[nodiscard]] Time cycles(std::int64_t count) const { return all.description.clock.cycles(count); }
};

// A unit that works on one item at a time. take() returns when the next item, which takes this many cycles,
// is done.
struct Pace {
  Time take(const Card& card, Time earliest, std::int64_t cycles, EngineUse& use) {
    const Time begin = std::max(earliest, free_at);
    use.take(earliest, begin, card.cycles(cycles));
    return free_at = begin + card.cycles(cycles);
  }

  Time free_at;
};

inline constexpr unsigned role_bits = 3;

[[nodiscard]] constexpr MessageId message_of(const Packet& packet) {
  return static_cast<MessageId>(packet.message >> role_bits);
}
[[nodiscard]] constexpr Role role_of(const Packet& packet) {
  return static_cast<Role>(packet.message & ((1U << role_bits) - 1));
}

// The bytes of the message that packet number `sequence` carries, if each packet carries `packet_bytes`.
[[nodiscard]] constexpr std::int64_t payload_of(std::int64_t packet_bytes, std::int64_t message_bytes,
                                                std::uint32_t sequence) {
  return std::min(packet_bytes, message_bytes - std::int64_t{sequence} * packet_bytes);
}

// Makes a packet with this many bytes between header and footer, padded to the granule.
[[nodiscard]] Packet make_packet(const Card& card, MessageId id, Role role, std::int64_t content_bytes);

}  // namespace apenet::extoll
