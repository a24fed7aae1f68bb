// Checks whether a description can be wired, as far as network and card cannot check it alone.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/description.hpp"
#include "nic/nic.hpp"

namespace apenet {

// The number of nodes of the machine: those of the network, or, without a network, as many as the processes
// need. Throws std::invalid_argument as below.
[[nodiscard]] std::uint32_t count_nodes(const MachineDescription& description,
                                        const std::vector<NodeId>& node_of_process);

// Throws std::invalid_argument naming key, value and what was expected. The keys are those of the TOML files.
// The network's own keys are checked by make_network.
void validate(const MachineDescription& description, const std::vector<NodeId>& node_of_process);

// The same, for a card whose sends must carry messages of at least this size.
void require_sends_of(std::int64_t bytes, const NicCapabilities& card);

// The same, for a descriptor that a process posts.
void validate(const Descriptor& descriptor, const NicCapabilities& card, std::uint32_t process_count);

}  // namespace apenet
