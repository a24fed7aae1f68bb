// Creates a network from its description.
#pragma once

#include <memory>

#include "kernel/simulation.hpp"
#include "network/description.hpp"
#include "network/network.hpp"

namespace apenet {

// Throws std::invalid_argument, which names key, value and what was expected.
[[nodiscard]] std::unique_ptr<Network> make_network(Simulation& simulation,
                                                    const NetworkParameters& parameters);

}  // namespace apenet
