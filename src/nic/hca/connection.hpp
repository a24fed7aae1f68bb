// Connections: a queue pair at its source and its partner at the target, one for each (source, target,
// channel).
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "kernel/check.hpp"
#include "kernel/queue_pool.hpp"
#include "kernel/time.hpp"
#include "nic/messages.hpp"

namespace apenet::hca {

using ConnectionId = std::uint32_t;

// A work request of a send queue.
struct Work {
  MessageId id = 0;               // names the message until everything is told that its descriptor asked for
  std::uint32_t number = 0;       // within the send queue
  std::uint32_t read_number = 0;  // of an issued read, among those of the queue
  Time present_at = Time::never();  // on the card; unknown while it crosses the bus
  bool has_payload = false;         // in the entry itself: nothing is to be read
  bool is_read = false;
  bool asks_ack = false;
  bool is_signalled = false;  // writes a completion queue entry
  bool is_processed = false;  // its packets can be made
  bool is_held_back = false;  // a read: for those under way
};

// A send or write whose last packet is there, on its way into memory.
struct Inbound {
  MessageId id = 0;
  std::uint32_t number = 0;
  bool asks_ack = false;
  bool is_complete = false;
};

// The source's half. Work requests go from in_host_memory to on_card to unacknowledged, in their order, which
// is also the order in which they are retired.
struct SendQueue {
  using Queue = QueuePool<Work>::Queue;
  Queue in_host_memory;
  Queue on_card;         // fetched or being fetched; packets are made of the first
  Queue unacknowledged;  // all packets made
  std::uint32_t posted = 0;
  std::uint32_t retired = 0;
  std::uint32_t known = 0;  // of those in host memory, rung for
  std::uint32_t on_card_count = 0;
  std::uint32_t outstanding = 0;   // on_card and unacknowledged
  std::uint32_t next_packet = 0;   // of the first on_card
  std::uint32_t acknowledged = 0;  // works with lower numbers are complete at the target, reads aside
  std::uint32_t answered = 0;      // of the last read completed
  std::uint32_t reads_issued = 0;
  std::uint32_t reads_completed = 0;
  std::uint32_t since_asked = 0;  // works behind the last that asks for an acknowledgement
  bool is_processing = false;     // the first on_card
  bool is_ready = false;          // has its turn with the scheduler
  bool is_held = false;           // the receiver was not ready
};

// The target's half. Messages are executed in their order.
struct ReceiveSide {
  QueuePool<Inbound>::Queue inbound;
  QueuePool<MessageId>::Queue reads;  // to be served
  std::uint32_t received = 0;         // messages whose last packet was accepted
  std::uint32_t executed = 0;         // acknowledged is what this says
  std::uint32_t reads_startable = 0;
  std::uint32_t next_packet = 0;  // of the first of reads
  bool response_is_ready = false;
  bool ack_waits = false;    // a packet for it is queued, and will say the latest
  bool is_refusing = false;  // until the packet that found no receive work request comes again:
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

// All connections of a machine, made when they are first used, as a program makes them at its start.
class ConnectionTable {
 public:
  static constexpr std::uint64_t max_connections = std::uint64_t{1} << 28U;

  ConnectionId of(const Descriptor& descriptor) {
    const auto [entry, is_new] =
        numbers_.try_emplace({descriptor.source, descriptor.target, descriptor.channel},
                             static_cast<ConnectionId>(connections_.size()));
    if (is_new) {
      APENET_CHECK(connections_.size() < max_connections, "more than 2^28 connections");
      connections_.push_back({descriptor.source, descriptor.target, descriptor.channel, {}, {}});
    }
    return entry->second;
  }
  [[nodiscard]] Connection& operator[](ConnectionId id) { return connections_[id]; }
  [[nodiscard]] const Connection& operator[](ConnectionId id) const { return connections_[id]; }
  [[nodiscard]] std::size_t size() const { return connections_.size(); }

 private:
  std::map<std::tuple<ProcessId, ProcessId, std::uint16_t>, ConnectionId> numbers_;
  std::vector<Connection> connections_;
};

}  // namespace apenet::hca
