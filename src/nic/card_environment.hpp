// CardEnvironment: what the cards of a machine share and do not change, of whatever kind. A kind adds its
// counters and state.
#pragma once

#include <cstdint>

#include "network/routing/injection_fifos.hpp"
#include "nic/card_set.hpp"

namespace apenet {

template <typename Description>
struct CardEnvironment {
  // Requires a network.
  CardEnvironment(const Description& card, const CardSurroundings& surroundings)
      : simulation(surroundings.simulation),
        network(*surroundings.network),
        fifos(surroundings.wiring, surroundings.channels),
        messages(surroundings.messages),
        placement(surroundings.placement),
        description(card),
        outstanding_reads(surroundings.host.bus.outstanding_reads),
        first_source(surroundings.first_source) {}

  Simulation& simulation;
  Network& network;
  InjectionFifos fifos;
  MessageTable& messages;
  const Placement& placement;
  Description description;
  std::uint32_t outstanding_reads;  // payload reads in progress on a bus, at most
  std::uint32_t first_source;       // the event source of node 0's card
};

}  // namespace apenet
