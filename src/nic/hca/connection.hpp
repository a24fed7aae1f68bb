// Connections: a queue pair at the source and its partner at the target, one connection per (source, target,
// channel).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "kernel/check.hpp"
#include "kernel/queue_pool.hpp"
#include "kernel/time.hpp"
#include "nic/messages.hpp"

namespace apenet::hca {

using ConnectionId = std::uint32_t;

// A work request in a send queue.
struct Work {
  // Valid until every completion that the descriptor requests has been reported.
  MessageId id = 0;
  std::uint32_t number = 0;         // position in the send queue
  std::uint32_t read_number = 0;    // an issued read's number among the reads of the queue
  Time present_at = Time::never();  // when it is on the card; never() while it crosses the bus
  bool has_payload = false;         // in the entry itself, so no payload is read
  bool is_read = false;
  bool asks_ack = false;
  bool is_signalled = false;  // writes a completion queue entry
  bool is_processed = false;  // its packets can be sent
  bool is_held_back = false;  // a read that waits because of the reads in progress
};

// A send or write whose last packet has arrived, and whose payload is being written to memory.
struct Inbound {
  MessageId id = 0;
  std::uint32_t number = 0;
  bool asks_ack = false;
  bool is_complete = false;
};

// The half of a connection at its source. Work requests move from in_host_memory to on_card to
// unacknowledged. They keep their order, which is also the order of retirement.
struct SendQueue {
  using Queue = QueuePool<Work>::Queue;
  Queue in_host_memory;
  Queue on_card;         // fetched or being fetched; packets are made from the first
  Queue unacknowledged;  // all packets have been sent
  std::uint32_t posted = 0;
  std::uint32_t retired = 0;
  std::uint32_t known = 0;  // entries in host memory whose doorbell has arrived
  std::uint32_t on_card_count = 0;
  std::uint32_t outstanding = 0;   // entries in on_card and unacknowledged
  std::uint32_t next_packet = 0;   // next packet of the first entry in on_card
  std::uint32_t acknowledged = 0;  // entries with lower numbers are complete at the target, except reads
  std::uint32_t answered = 0;      // number of the last completed read
  std::uint32_t reads_issued = 0;
  std::uint32_t reads_completed = 0;
  std::uint32_t since_asked = 0;  // entries since the last one that asks for an acknowledgement
  std::uint32_t unsent = 0;       // no packet of entries with this number or higher has left
  std::uint16_t fifo = 0;         // where its requests go, with InjectionRule::least_loaded
  bool is_processing = false;     // the first entry in on_card is being processed
  bool is_ready = false;          // is queued in the scheduler
  bool is_held = false;           // waits after "receiver not ready"
};

// The half of a connection at its target. Messages are executed in order.
struct ReceiveSide {
  QueuePool<Inbound>::Queue inbound;
  QueuePool<MessageId>::Queue reads;  // read requests to serve
  std::uint32_t received = 0;         // messages whose last packet was accepted
  std::uint32_t executed = 0;         // messages executed; an acknowledgement reports this number
  std::uint32_t reads_startable = 0;
  std::uint32_t next_packet = 0;  // next packet of the first request in reads
  bool response_is_ready = false;
  bool ack_waits = false;    // an acknowledgement packet is queued; it will report the latest number
  bool is_refusing = false;  // until the packet that found no receive work request is sent again
  MessageId refused_id = 0;
  std::uint32_t refused_packet = 0;
};

struct Connection {
  ProcessId source = 0;
  ProcessId target = 0;
  std::uint16_t channel = 0;
  SendQueue send;
  ReceiveSide receive;
};

// All connections of a machine. Each is created at its first use.
class ConnectionTable {
 public:
  static constexpr std::uint64_t max_connections = std::uint64_t{1} << 28U;

  ConnectionId of(const Descriptor& descriptor) {
    const auto [entry, is_new] =
        state_.numbers.try_emplace({descriptor.source, descriptor.target, descriptor.channel},
                                   static_cast<ConnectionId>(state_.connections.size()));
    if (is_new) {
      APENET_CHECK(state_.connections.size() < max_connections, "more than 2^28 connections");
      state_.connections.push_back({descriptor.source, descriptor.target, descriptor.channel, {}, {}});
    }
    return entry->second;
  }
  [[nodiscard]] Connection& operator[](ConnectionId id) { return state_.connections[id]; }
  [[nodiscard]] const Connection& operator[](ConnectionId id) const { return state_.connections[id]; }
  [[nodiscard]] std::size_t size() const { return state_.connections.size(); }

  // Source, target and channel.
  struct Name {
    ProcessId source = 0;
    ProcessId target = 0;
    std::uint16_t channel = 0;
    auto operator<=>(const Name&) const = default;
  };
  struct State {
    std::map<Name, ConnectionId> numbers;
    std::vector<Connection> connections;
  };

 private:
  State state_;
};

}  // namespace apenet::hca
