// Makes the description of a network from the values of a machine file: what needs more than one key.
#pragma once

#include <string>
#include <vector>

#include "network/description.hpp"
#include "schema/listing.hpp"
#include "schema/values.hpp"

namespace apenet {

// The keys of [network] that belong to one topology.
struct TopologyKeys {
  std::string name;
  std::vector<std::string> needs = {};
  std::vector<std::string> allows = {};
  std::vector<std::string> routings;
  std::vector<std::string> links;  // tables below [network.link]; of a cube, as many as it has dimensions
  bool has_routers = true;         // as in TopologyKind
  bool is_grid = false;
  bool wraps = false;
};
[[nodiscard]] std::vector<TopologyKeys> topology_keys();

// [network], [network.link], [router].
[[nodiscard]] std::vector<schema::Section> network_sections();

// Reads them. Throws std::invalid_argument naming the key, its value and what was expected.
[[nodiscard]] NetworkDescription read_network(schema::Values& values);

// Adds what the description holds: the keys of [network], and what became of the other sections.
void read_base_units(const NetworkDescription& network, schema::BaseValues& values);

}  // namespace apenet
