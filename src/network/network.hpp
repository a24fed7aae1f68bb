// Network: the interface of all network engines. It accepts packets and delivers packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernel/state.hpp"
#include "kernel/time.hpp"
#include "network/packet.hpp"

namespace apenet {

class Routing;

// The callbacks of a network to a card. Each is called from the event that it describes, so now() is that
// time.
class NetworkClient {
 public:
  // The packet's tail has now reached this node's ejection buffer. head_time: when its header did; a
  // cut-through receiver may have begun to drain it then. The buffer space is held until Network::consumed().
  virtual void packet_arrived(const Packet& packet, Time head_time) = 0;
  // A packet's tail has left the injection buffer, so injection_room() of that channel has grown. Called once
  // for each Network::await_injection_room().
  virtual void injection_freed(std::uint16_t channel) = 0;
  // The packet's header has left the injection buffer at head_time: now, or one clock cycle of the engine
  // ago. Engines may omit the call if the header left immediately. Called again for a packet that a fault has
  // taken back. Do not call inject() from here.
  virtual void packet_entered(const Packet& /*packet*/, Time /*head_time*/) {}

 protected:
  ~NetworkClient() = default;
};

// Counters of one link (one direction of a cable).
struct LinkStatistics {
  std::string name;  // for example "(0,0,0)+x"
  std::uint64_t packets = 0;
  std::uint64_t wire_bytes = 0;
  Time busy;  // from each packet's header to its tail, including waits of the tail and retransmissions
  std::uint64_t corrupted_packets = 0;    // corrupted transmissions of packets
  std::uint64_t retransmitted_bytes = 0;  // in addition to wire_bytes
};

// Faults of a network and their cost. See docs/models/faults.md.
struct FaultUse {
  std::uint64_t events = 0;  // failures and recoveries of links and nodes
  std::uint64_t reconfigurations = 0;
  std::uint64_t packets_taken_back = 0;
  std::uint64_t corrupted_packets = 0;
  std::uint64_t retransmitted_bytes = 0;
};

// A packet's destination cannot be reached now or later. The message names both nodes, time and cause.
class NetworkPartitioned : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The use of one kind of shared resource: links, ports between routers and cards, engines, buses, memory.
struct PortUse {
  std::string name;
  std::vector<Time> busy;     // one for each of them
  std::uint64_t packets = 0;  // bursts, descriptors, messages: what they move
  // All of these, from when they could leave or begin until they did; never where the model does not count.
  Time waited = Time::never();
};

// Packets that had to be held at destinations to restore their order. Zero with a routing that keeps order.
struct ReorderUse {
  std::uint64_t held_packets = 0;
  std::int64_t peak_bytes = 0;  // maximum held at one node at one time
};

// Contract of every engine (tests/contract): every injected packet is delivered exactly once, to its
// destination; packets of one (source, destination, channel) arrive in the order of injection; nothing is
// dropped; a network whose clients consume what arrives drains; equal inputs give equal times.
class Network {
 public:
  virtual ~Network() = default;

  [[nodiscard]] virtual std::uint32_t node_count() const = 0;
  virtual void attach(NodeId node, NetworkClient& client) = 0;

  // Free bytes in the node's injection buffer for this channel. A card reserves space before it reads memory:
  // credits hold the sender back, and nothing is dropped.
  [[nodiscard]] virtual std::int64_t injection_room(NodeId node, std::uint16_t channel) const = 0;

  // Requests one call of injection_freed() for that channel, when its room next grows. Optional, because for
  // most packets nobody waits for their space.
  virtual void await_injection_room(NodeId node, std::uint16_t channel) = 0;

  // Whether no packet is in the network or in a card's FIFO, and no credit is on its way. May say false where
  // it is unknown.
  [[nodiscard]] virtual bool is_empty() const { return false; }
  // From now on packets take these routes; nullptr: the machine's own. Requires is_empty(), as many channel
  // classes as the machine's own routing has at most, and that the routing lives until the next call.
  virtual void take_routes(const Routing* /*routing*/) {}

  // Sets the run's time zero, now or later, while the network is empty. Fault times are relative to it, and
  // bit errors are drawn and counted from it on.
  virtual void begin(Time /*zero*/) {}

  // Injects a packet whose header is in the injection buffer now and whose tail will be there at tail_time >=
  // now (a DMA that is still running; the packet is forwarded cut-through behind it). Requires
  // packet.wire_bytes <= injection_room(packet.source, packet.channel). Returns the remaining room, which
  // does not shrink until the next inject() there, so that the caller need not query it each time.
  virtual std::int64_t inject(const Packet& packet, Time tail_time) = 0;

  // The client has now removed a delivered packet from the node's ejection buffer; its space is free again.
  virtual void consumed(NodeId node, const Packet& packet) = 0;

  // The node will inject on that channel soon: an engine whose state does not fit the cache prefetches it
  // here.
  virtual void prepare(NodeId /*node*/, std::uint16_t /*channel*/) const {}

  // Lists the states and counters of all that packets between the two nodes use. Returns false if the engine
  // cannot: if packets also depend on random numbers or on time.
  [[nodiscard]] virtual bool list_state(NodeId /*source*/, NodeId /*destination*/, StateList& /*list*/) {
    return false;
  }

  // The links between routers, ordered by router, then by port.
  [[nodiscard]] virtual std::uint32_t link_count() const = 0;
  [[nodiscard]] virtual LinkStatistics link_statistics(std::uint32_t link) const = 0;
  // The packets of all links together. Available for large networks too, because it needs no link names.
  [[nodiscard]] virtual std::uint64_t link_crossings() const {
    std::uint64_t packets = 0;
    for (std::uint32_t link = 0; link < link_count(); ++link) packets += link_statistics(link).packets;
    return packets;
  }
  [[nodiscard]] virtual ReorderUse reorder_use() const { return {}; }
  // One entry for each kind of port. Empty if the engine does not count it.
  [[nodiscard]] virtual std::vector<PortUse> port_use() const { return {}; }
  // One sentence for each deviation of this engine from its description.
  [[nodiscard]] virtual std::vector<std::string> warnings() const { return {}; }
  [[nodiscard]] virtual FaultUse fault_use() const { return {}; }
  // The number of pending events of the simulation that are future faults of this network.
  [[nodiscard]] virtual std::size_t faults_ahead() const { return 0; }
  // Whether a packet is in progress that a fault could affect. Takes time for each packet, and says no for a
  // network without faults.
  [[nodiscard]] virtual bool has_packets_at_risk() const { return false; }
};

}  // namespace apenet
