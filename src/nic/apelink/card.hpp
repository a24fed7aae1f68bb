// What the parts of an APENet card share: their environment, and how a message is split into packets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "host/bus.hpp"
#include "host/gpu_memory.hpp"
#include "kernel/counters.hpp"
#include "kernel/large_array.hpp"
#include "kernel/queue_pool.hpp"
#include "kernel/state.hpp"
#include "nic/apelink/description.hpp"
#include "nic/card_environment.hpp"
#include "nic/slab.hpp"
#include "nic/tag.hpp"

namespace apenet::apelink {

// Totals of all cards of a machine. The report states which of these features are assumed and not published.
struct Counters {
  std::uint64_t packets = 0;           // packets injected, of every role
  std::uint64_t acknowledgements = 0;  // part of them: for remote_done
  // Descriptors that waited in host memory because the card's FIFO was full.
  std::uint64_t descriptors_held_back = 0;
  std::uint64_t gets_served = 0;  // by the driver at the target
};

// The purpose of a packet. It is stored in the low bits of Packet::message, the card's own number.
enum class Role : std::uint8_t { data = 0, acknowledgement = 1, get_request = 2, get_reply = 3 };

// A descriptor in a card's FIFO.
struct QueuedDescriptor {
  MessageId id = 0;
  Role role = Role::data;
  Time present_at = Time::never();  // when it is on the card; never() while it waits for the bus
};

// A packet on its way from the card's decoder to the network.
struct Pending {
  Packet packet;
  Memory memory = Memory::host;    // the memory that holds its payload
  Time tail_time = Time::never();  // when its data are complete; never() until the first data have arrived
};

// The path of a hardware queue's packets into the network.
struct Channel {
  // Space of the injection buffer reserved for packets whose payload is still being read.
  std::int64_t reserved_bytes = 0;
  QueuePool<Pending>::Queue pending;  // in injection order; the first always waits for its data
  QueuePool<MessageId>::Queue acknowledgements;
};

// A descriptor FIFO; each port has one per hardware queue. One cache line, together with the data that is
// nearly always used at the same time.
struct alignas(64) Queue {
  QueuePool<QueuedDescriptor>::Queue fifo;  // on the card, in order; at most descriptor_fifo_entries
  QueuePool<QueuedDescriptor>::Queue in_host_memory;  // descriptors that found the FIFO full
  // Number of descriptors that have left the FIFO, modulo 2^32.
  Numbering<std::uint32_t> head_number;
  std::uint32_t size = 0;         // entries in the FIFO
  std::uint32_t next_packet = 0;  // next packet of the first entry's message
  bool decoding = false;
  // State of the hardware queue, which all ports share; used in the first port's entry only.
  Channel channel;
};

// What the cards of a machine share: environment, parameters, and the memory of their queues. Stored once, so
// that a card contains only its own state.
struct Cards : CardEnvironment<CommonDescription> {
  Cards(const CommonDescription& card, const CardSurroundings& surroundings, Time lookup = {})
      : CardEnvironment(card, surroundings),
        pio_write_latency(surroundings.host.bus.pio_write_latency),
        lookup_time(lookup),
        state{.queues = LargeArray<Queue>(surroundings.placement.port_count() *
                                          static_cast<std::size_t>(card.queues))},
        decoders(surroundings.placement.port_count() * static_cast<std::size_t>(card.queues)) {}

  Time pio_write_latency;
  Time lookup_time;  // per arriving packet, to find its buffer
  Time decode_time = description.clock.cycles(description.descriptor_cycles);
  std::size_t queues_taken = 0;
  struct State {
    LargeArray<Queue> queues;  // ordered by node
    QueuePool<QueuedDescriptor> entries = {};
    QueuePool<Pending> pending = {};
    QueuePool<MessageId> acknowledgements = {};
    // Packets whose payload is being written to memory, of cards with a Receiver.
    Slab<Packet> being_written = {};
  };
  State state;
  Counters counters = {};
  LargeArray<EngineUse> decoders;  // one for each queue

  // Takes the queues of the next node's card, which has this many ports in use.
  [[nodiscard]] Queue* take_queues(std::size_t ports) {
    Queue* const first = state.queues.data() + queues_taken;
    queues_taken += ports * static_cast<std::size_t>(description.queues);
    return first;
  }
};

struct Card {
  Cards& all;
  Bus& bus;
  GpuMemory* gpu;  // nullptr if the card cannot access it
  struct State {
    EventSource source;        // source of all events of this card
    Time driver_free_at = {};  // the driver serves gets one after another
  };
  State state;
  EngineUse driver = {};

  [[nodiscard]] NodeId node() const { return state.source.id - all.first_source; }
  [[nodiscard]] Time now() const { return all.simulation.now(); }
};

// is_silent: the target is not notified of the message.
[[nodiscard]] constexpr std::uint64_t packet_message(MessageId id, Role role, bool is_silent) {
  return std::uint64_t{id} << 3U | std::uint64_t{is_silent} << 2U | static_cast<std::uint64_t>(role);
}
[[nodiscard]] constexpr MessageId message_of(const Packet& packet) {
  return static_cast<MessageId>(packet.message >> 3U);
}
[[nodiscard]] constexpr bool is_silent(const Packet& packet) {
  return (packet.message >> 2U & 1U) != 0;
}
[[nodiscard]] constexpr Role role_of(const Packet& packet) {
  return static_cast<Role>(packet.message & 3U);
}

[[nodiscard]] constexpr bool carries_payload(Role role) {
  return role == Role::data || role == Role::get_reply;
}

// The bytes of the message that packet number `sequence` carries, without padding.
[[nodiscard]] constexpr std::int64_t payload_of(const CommonDescription& card, std::int64_t message_bytes,
                                                std::uint32_t sequence) {
  return std::min(card.max_payload_bytes, message_bytes - std::int64_t{sequence} * card.max_payload_bytes);
}

// The smallest payload is one granule, even if the message is empty (hep-lat/0409071: "the minimum packet
// payload is a 128bit word").
[[nodiscard]] constexpr std::int64_t padded(const CommonDescription& card, std::int64_t bytes) {
  const std::int64_t granules = (bytes + card.granule_bytes - 1) / card.granule_bytes;
  return std::max<std::int64_t>(1, granules) * card.granule_bytes;
}

// Traits of the cards of a machine.
[[nodiscard]] CardTraits common_traits(const CommonDescription& card, const HostDescription& host);

// Throws std::invalid_argument, which names key, value and what was expected.
void validate_common(const CommonDescription& card);
void append_counters(const Counters& counted, std::vector<Counter>& counters);
// `name`: the name of the card in the sentences.
void append_warnings(const Counters& counted, const std::string& name, std::vector<std::string>& warnings);

}  // namespace apenet::apelink
