// Whether a description can be wired: the checks that a network and a card cannot do for themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/description.hpp"
#include "nic/nic.hpp"

namespace apenet {

// Nodes of the machine: the product of network.dims, or, for a card without network and without dims, as
// many as the processes need. Throws std::invalid_argument as below.
[[nodiscard]] std::uint32_t count_nodes(const MachineDescription& description,
                                        const std::vector<NodeId>& node_of_process);

// Throws std::invalid_argument naming key, value and what was expected. The keys are those of the TOML files.
// The network's own keys are checked by make_network.
void validate(const MachineDescription& description, const std::vector<NodeId>& node_of_process);

// The same for a card whose sends have to carry messages of so many bytes at least.
void require_sends_of(std::int64_t bytes, const NicCapabilities& card);

// The same for one descriptor that a process posts.
void validate(const Descriptor& descriptor, const NicCapabilities& card, std::uint32_t process_count);

}  // namespace apenet
