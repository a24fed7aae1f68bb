// Network: takes packets in, hands packets out. The interface behind which the engines sit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernel/time.hpp"
#include "network/packet.hpp"

namespace apenet {

// What a card sees of the network. Calls come from the event that they describe: now() is the time named.
class NetworkClient {
 public:
  // The packet's tail has reached this node's ejection buffer (now). head_time is when its header had: a
  // cut-through receiver may have begun to drain it then. The buffer space is held until Network::consumed.
  virtual void packet_arrived(const Packet& packet, Time head_time) = 0;
  // A packet's tail has left the injection buffer: injection_room() of that channel has grown. Called once
  // after Network::await_injection_room.
  virtual void injection_freed(std::uint16_t channel) = 0;
  // The packet's header has left the injection buffer, at head_time: now, or a clock cycle of the engine ago.
  // Engines need not tell if it left as soon as it was there. Again for a packet that a fault has taken back.
  // Not a time to inject.
  virtual void packet_entered(const Packet& /*packet*/, Time /*head_time*/) {}

 protected:
  ~NetworkClient() = default;
};

// What one link, one direction of a cable, did so far.
struct LinkStatistics {
  std::string name;  // "(0,0,0)+x"
  std::uint64_t packets = 0;
  std::uint64_t wire_bytes = 0;
  Time busy;  // from each packet's header to its tail, waits of the tail and retransmissions included
  std::uint64_t corrupted_packets = 0;    // transmissions of them
  std::uint64_t retransmitted_bytes = 0;  // beside wire_bytes
};

// What went wrong in a network, and what that cost. See docs/models/faults.md.
struct FaultUse {
  std::uint64_t events = 0;  // of links and nodes that died or revived
  std::uint64_t reconfigurations = 0;
  std::uint64_t packets_taken_back = 0;
  std::uint64_t corrupted_packets = 0;
  std::uint64_t retransmitted_bytes = 0;
};

// A packet whose destination cannot be reached and will not be again: who from whom, since when and why.
class NetworkPartitioned : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What had to be held at destinations to put packets back in order: nothing with a routing that keeps it.
struct ReorderUse {
  std::uint64_t held_packets = 0;
  std::int64_t peak_bytes = 0;  // held at one node at one time, at most
};

// Contract, for every engine (tests/contract): every injected packet is delivered exactly once, to its
// destination, with packets of one (source, destination, channel) in the order of their injection; nothing is
// dropped; a network whose clients consume what arrives drains; equal inputs give equal times.
class Network {
 public:
  virtual ~Network() = default;

  [[nodiscard]] virtual std::uint32_t node_count() const = 0;
  virtual void attach(NodeId node, NetworkClient& client) = 0;

  // Free bytes in the node's injection buffer for this channel. A card reserves room before it reads memory:
  // credits hold the sender back, nothing is dropped.
  [[nodiscard]] virtual std::int64_t injection_room(NodeId node, std::uint16_t channel) const = 0;

  // Asks for one injection_freed of that channel, when its room next grows. Not asking costs nothing: most
  // packets leave without anybody waiting for their place.
  virtual void await_injection_room(NodeId node, std::uint16_t channel) = 0;

  // The run's time zero, now or later, with nothing under way: faults happen at times from here, and bit
  // errors are drawn and counted from here.
  virtual void begin(Time /*zero*/) {}

  // Hands over a packet whose header is in the injection buffer now and whose tail will be there at
  // tail_time >= now (a DMA that still runs; the packet is forwarded cut-through behind it).
  // Requires packet.wire_bytes <= injection_room(packet.source, packet.channel). Returns what is left of
  // that: it does not shrink until the next packet there, so that not every one need be asked for.
  virtual std::int64_t inject(const Packet& packet, Time tail_time) = 0;

  // The client has moved a delivered packet out of the node's ejection buffer (now); its space is free again.
  virtual void consumed(NodeId node, const Packet& packet) = 0;

  // The node will soon inject on that channel: an engine whose state does not fit the cache asks for it here.
  virtual void prepare(NodeId /*node*/, std::uint16_t /*channel*/) const {}

  // The links between routers, in the order of routers and of their ports.
  [[nodiscard]] virtual std::uint32_t link_count() const = 0;
  [[nodiscard]] virtual LinkStatistics link_statistics(std::uint32_t link) const = 0;
  // The packets of all links together: what a large network can say without a name for each link.
  [[nodiscard]] virtual std::uint64_t link_crossings() const {
    std::uint64_t packets = 0;
    for (std::uint32_t link = 0; link < link_count(); ++link) packets += link_statistics(link).packets;
    return packets;
  }
  [[nodiscard]] virtual ReorderUse reorder_use() const { return {}; }
  // One sentence for each thing that this engine does not do as its description says.
  [[nodiscard]] virtual std::vector<std::string> warnings() const { return {}; }
  [[nodiscard]] virtual FaultUse fault_use() const { return {}; }
  // Whether all so many pending events of the simulation are faults to come, with nothing under way that they
  // could concern.
  [[nodiscard]] virtual bool is_quiet_until_faults(std::size_t /*pending_events*/) const { return false; }
};

}  // namespace apenet
