// The records of the packet engine: packets on their way, queues, outputs. Each is a cache line, or half of
// one.
#pragma once

#include <cstdint>
#include <limits>

#include "kernel/state.hpp"
#include "kernel/time.hpp"
#include "network/packet.hpp"
#include "network/packet/serialisation.hpp"

namespace apenet::packet {

// No flight, or no credit return: record 0 is never used, so that a prefetch of it needs no branch.
constexpr std::uint32_t none = 0;

// A packet on its way: the fields of Packet without its padding, so that all of it is one cache line.
struct alignas(64) Flight {
  Time tail_in;  // when the tail is in the queue the packet is in, or in the ejection buffer
  Time ready;    // when the header may leave that queue; at ejection: when it arrived
  std::uint64_t message = 0;
  NodeId source = 0;
  NodeId destination = 0;
  std::uint32_t payload_bytes = 0;
  std::uint32_t wire_bytes = 0;
  std::uint32_t sequence = 0;
  std::uint32_t next = none;           // behind it in the queue, or the next free record
  std::uint32_t wanted_output = none;  // output of the router it is at or travels to
  std::uint32_t order = 0;
  std::uint16_t channel = 0;
  std::uint16_t hops = 0;
  std::uint8_t wanted_vc = 0;  // behind that output
  bool last = false;
  bool may_reroute = false;  // adaptive, and not waiting for the escape
  bool is_resent = false;    // taken back: its place in the card's FIFO is the next packet's already

  [[nodiscard]] Packet packet() const {
    return {source, destination, payload_bytes, wire_bytes, message, sequence, channel, hops, last, 0, order};
  }
};

static_assert(sizeof(Flight) == 64);

// Queue::needed_bytes of a card's FIFO whose injection_freed is under way.
constexpr std::uint32_t notified_bytes = std::numeric_limits<std::uint32_t>::max();

// An input buffer or an injection FIFO. Credits come back in the order in which they set out, since a queue
// dispatches one packet at a time. The credit of the packet dispatched last is back at free_at plus the
// latency of a credit; all others come before it.
struct alignas(32) Queue {
  Time free_at;                          // the tail of the packet dispatched last has left
  std::int32_t room_bytes = 0;           // as the upstream output (or the card) knows it
  std::uint32_t returning_bytes = 0;     // the last credit on its way; 0: none is
  std::uint32_t earlier_returns = none;  // the last of the ring of those before it
  std::uint32_t head = none;             // flights
  std::uint32_t tail = none;
  std::uint32_t needed_bytes = 0;  // for which the upstream output waits; 0: none. For a card: any room,
                                   // 1, or notified_bytes when injection_freed is under way

  // No packet is in it, nobody waits for room, and every credit is back if Moment::reach is at least the
  // latency of a credit: then all of it is free, in whichever fields that is noted.
  [[nodiscard]] bool is_quiescent(Moment at) const {
    const auto& [left_at, room, returning, earlier, first, last, needed] = *this;
    static_cast<void>(room);       // the three of them make up
    static_cast<void>(returning);  // the size of the buffer
    static_cast<void>(earlier);
    static_cast<void>(last);  // valid while there is a first
    return at.is_past(left_at) && first == none && needed == 0;
  }
  // More strict than needed: what it holds is in the engine's records.
  friend bool is_same_state(const Queue& left, Moment left_at, const Queue& right, Moment right_at) {
    return left.is_quiescent(left_at) && right.is_quiescent(right_at);
  }
};

// A link, an ejection port or an injection port. Spec, state and counters fill one cache line together, so
// that the spec lies in the padding of the state.
struct alignas(64) Output {
  struct Counters {
    Time busy;
    std::uint64_t packets = 0;
    std::uint64_t wire_bytes = 0;
  };
  struct State {
    Time wake_at = Time::never();    // time of the pending wake; later ones are void
    std::uint64_t waiting_mask = 0;  // the first 64 queues that can wait; the others are in WaitingQueues
    std::uint16_t waiting = 0;       // queues
    std::uint16_t last_granted = 0;  // arbiter state: number of the queue among them
  };
  struct Spec {
    std::uint32_t first_buffer = 0;  // queues behind it, one per virtual channel; or the ejection buffer
    std::uint32_t first_queue = 0;   // first of the queues that can ask for it
    std::uint32_t next_router = 0;   // behind it; of an ejection port: its own
    std::uint32_t next_place =
        0;  // coordinates of that router, as DimensionOrderRouting packs them; 0 for other routings
    std::uint8_t stage = 0;    // index into the engine's stages
    std::uint8_t vc_mask = 0;  // mask of the buffers behind it: 0 where there is one
  };

  Counters counters;
  [[no_unique_address]] State state;
  Spec spec;

  [[nodiscard]] std::uint32_t buffer(std::uint32_t vc) const {
    return spec.first_buffer + (vc & spec.vc_mask);
  }
};

static_assert(sizeof(Output) == 64);

enum class StageKind : std::uint8_t { link, ejection, injection };

// The values that all outputs of one kind and dimension share.
struct Stage {
  struct Spec {
    StageKind kind = StageKind::link;
    bool has_errors = false;
    Serialisation serialisation;
    Time latency;
    Time header_latency;  // the same and the next router's, to where the header may leave again
    Time tail_latency;    // time of a tail through the router
    double bit_error_rate = 0;
    Time credit_latency;  // latency for the queues that ask for it
  };
  struct Counters {
    Time waited;  // all headers, from when they could leave until they did
  };
  // Times of the previous packet: the next is usually as long, and then needs no division.
  struct Memo {
    std::uint32_t last_bytes = 0;
    Time last_duration;
    Time last_span;  // from header to tail: longer where flits wait for credits
  };

  Spec spec;
  Counters counters;
  Memo memo;
};

}  // namespace apenet::packet
