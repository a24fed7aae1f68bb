#include "machine/node_name.hpp"

#include <cctype>
#include <cstdint>
#include <utility>
#include <vector>

#include "network/topology/cube.hpp"

namespace apenet {

std::string node_name(const MachineDescription& machine, NodeId node) {
  std::string name = machine.name;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.') c = '-';
  }
  std::vector<std::uint32_t> dims = machine.network.topology.dims();
  const std::vector<std::uint32_t> place =
      dims.empty() ? std::vector<std::uint32_t>{node} : CubeShape(std::move(dims)).coordinates(node);
  for (const std::uint32_t coordinate : place) name += "-" + std::to_string(coordinate);
  return name.size() > most_node_name ? name.substr(name.size() - most_node_name) : name;
}

}  // namespace apenet
