#include "network/topology/description.hpp"

#include "kernel/refuse.hpp"
#include "network/topology/crossbar.hpp"
#include "network/topology/cube.hpp"
#include "network/topology/fat_tree.hpp"
#include "network/topology/graph.hpp"

namespace apenet {

// One line registers a topology: what is not here does not exist.
const std::vector<TopologyDescription>& registered_topologies() {
  static const std::vector<TopologyDescription> topologies = {
      NoTopologyDescription{},  //
      TorusDescription{},       //
      MeshDescription{},        //
      FatTreeDescription{},     //
      CrossbarDescription{},    //
      GraphDescription{},       //
  };
  return topologies;
}

TopologyDescription::TopologyDescription() : TopologyDescription(NoTopologyDescription{}) {}

std::vector<std::string> TopologyKind::link_sections(std::size_t count) const {
  std::vector<std::string> sections;
  for (const std::string& table : link_tables) {
    if (sections.size() < count) sections.push_back("network.link." + table);
  }
  return sections;
}

void refuse_list(const std::string& key, const std::vector<std::uint32_t>& list,
                 const std::string& expected) {
  std::string text = "[";
  for (const std::uint32_t value : list) text += (text.size() > 1 ? ", " : "") + std::to_string(value);
  refuse_value("network." + key, text + "]", expected);
}

}  // namespace apenet
