// Rails: the cards of a node, each with a network of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "machine/description.hpp"
#include "machine/peer_queues.hpp"
#include "network/network.hpp"
#include "network/programmed_routes.hpp"
#include "nic/card_set.hpp"

namespace apenet {

// Number of rails of the machine, including the first.
[[nodiscard]] std::uint8_t rail_count(const MachineDescription& machine);

// The machine whose nodes have this rail alone. Rail 0 is the first. Of a machine with one rail, the machine
// itself.
[[nodiscard]] MachineDescription rail_alone(const MachineDescription& machine, std::uint8_t rail);

// Prefix of the names of links, counters and warnings of a further rail; empty for the first.
[[nodiscard]] std::string rail_prefix(const MachineDescription& machine, std::uint8_t rail);

// "rail.NAME", the prefix of the keys of a further rail.
[[nodiscard]] std::string rail_key(const MachineDescription& machine, std::uint8_t rail);

// NetworkParameters::card_channels of a rail.
[[nodiscard]] std::uint32_t channels_of_fifo(const CardTraits& card, const NetworkDescription& network);

// A rail, wired.
struct Rail {
  // The parts that the rails of a machine share.
  struct Shared {
    Simulation& simulation;
    MessageTable& messages;
    const Placement& placement;
    std::uint32_t nodes;
    std::uint32_t first_vector;    // the event source of process 0's interrupts
    CardSet* at_bus_of = nullptr;  // CardSurroundings
  };
  // alone: see rail_alone.
  Rail(std::uint8_t number, MachineDescription alone, const Shared& shared);

  [[nodiscard]] bool goes_through_memory(ProcessId source, ProcessId target) const {
    return description.same_node.goes_through_memory(placement, source, target);
  }

  MachineDescription description;
  const Placement& placement;
  CardTraits traits;
  PeerQueues queues;
  std::unique_ptr<Network> network;  // null if the card has no network
  std::unique_ptr<CardSet> cards;
  std::unique_ptr<Interrupts> interrupts;    // null where processes poll
  std::unique_ptr<ProgrammedRoutes> routes;  // once a program has asked for them
};

}  // namespace apenet
