// MessageWork: what messages cost the simulator, in packet-hops, so that a run of hours can be refused before
// it begins.
#pragma once

#include <cstdint>

#include "machine/description.hpp"
#include "network/topology/cube.hpp"
#include "nic/card_set.hpp"

namespace apenet {

// Packets times the links on their way; a packet that crosses none counts as one. Doubles, because the
// product of an absurd size and an absurd number of messages exceeds 64 bits; below 2^53 they are exact.
struct PacketHops {
  double all = 0;
  // The part that software forwards from node to node, which takes the host many times as long.
  double forwarded = 0;

  PacketHops& operator+=(const PacketHops& other) {
    all += other.all;
    forwarded += other.forwarded;
    return *this;
  }
  friend PacketHops operator*(const PacketHops& hops, double times) {
    return {hops.all * times, hops.forwarded * times};
  }
};

// A lower bound: packets are as large and ways as short as the card and the network allow (NodeDistances).
// Only cards whose links lead to neighbours in a torus or mesh forward by software
// (CardTraits::forwards_by_software); on all other machines the network reaches every node.
class MessageWork {
 public:
  explicit MessageWork(const MachineDescription& machine);

  [[nodiscard]] PacketHops of(NodeId from, NodeId to, std::int64_t bytes) const;

 private:
  CardTraits traits_;
  NodeDistances distances_;
};

}  // namespace apenet
