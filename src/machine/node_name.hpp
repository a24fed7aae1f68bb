// node_name(): what a node of a machine is called, by programs and by batch systems.
#pragma once

#include <cstddef>
#include <string>

#include "machine/machine.hpp"

namespace apenet {

inline constexpr std::size_t most_node_name = 63;  // bytes that all hosts accept (RFC 1123, section 2.1)

// "ape16-1-0-2", or with the node's number if nodes have no coordinates. Characters that are not allowed in
// host names become dashes. A name that is too long loses its beginning, because the end identifies the node.
std::string node_name(const MachineDescription& machine, NodeId node);

}  // namespace apenet
