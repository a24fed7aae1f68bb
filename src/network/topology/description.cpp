#include "network/topology/description.hpp"

#include "kernel/refuse.hpp"

namespace apenet {

#define APENET_TOPOLOGY(Struct) \
  struct Struct;                \
  template <>                   \
  TopologyDescription registered<Struct>();
#include "network/topology/list.inc"
#undef APENET_TOPOLOGY

const std::vector<TopologyDescription>& registered_topologies() {
  static const std::vector<TopologyDescription> topologies = {
#define APENET_TOPOLOGY(Struct) registered<Struct>(),
#include "network/topology/list.inc"
#undef APENET_TOPOLOGY
  };
  return topologies;
}

TopologyDescription::TopologyDescription() : TopologyDescription(registered_topologies().front()) {}

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
