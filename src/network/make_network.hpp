// The factory of networks: description in, engine out.
#pragma once

#include <memory>

#include "kernel/simulation.hpp"
#include "network/network.hpp"
#include "network/parameters.hpp"

namespace apenet {

// Throws std::invalid_argument naming the key, its value and what was expected.
[[nodiscard]] std::unique_ptr<Network> make_network(Simulation& simulation,
                                                    const NetworkParameters& parameters);

}  // namespace apenet
