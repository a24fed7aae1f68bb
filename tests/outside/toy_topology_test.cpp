// A toy topology, added from outside the tree by docs/internals/adding-a-topology.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "machine/machine.hpp"
#include "network/topology/star_of_rings.hpp"
#include "support/machines.hpp"
#include "support/recorder.hpp"

namespace apenet {
namespace {

// The cards of ape16 on the network of star.toml, with some keys changed or added.
MachineDescription star(const schema::Entries& changes = {}) {
  schema::Entries values = test::machine_values("star");
  for (const auto& entry : test::machine_values("ape16")) {
    if (!entry.first.starts_with("network.")) values.push_back(entry);
  }
  for (const auto& change : changes) {
    std::erase_if(values, [&](const auto& entry) { return entry.first == change.first; });
    values.push_back(change);
  }
  return describe(std::move(values));
}

std::string refusal_of_star(const schema::Entries& changes) {
  try {
    Simulation simulation;
    const Machine machine(simulation, star(changes), {0, 1});
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(ToyTopology, IsDescribedByItsMachineFile) {
  const MachineDescription machine = star();
  const auto* described = machine.network.topology.as<StarOfRingsDescription>();
  ASSERT_NE(described, nullptr);
  EXPECT_EQ(described->rings, 3U);
  EXPECT_EQ(described->nodes_per_ring, 4U) << "by default";
  EXPECT_EQ(machine.network.topology.node_count(), 12U);
  ASSERT_EQ(machine.network.links.size(), 2U);
  EXPECT_EQ(machine.network.links[0].latency, Time::from_ns(50));
  EXPECT_EQ(machine.network.links[1].latency, Time::from_ns(200)) << "of [network.link.spoke]";
  const schema::BaseValues base = base_units(machine);
  EXPECT_EQ(base.at("network.topology"), schema::BaseValue("star-of-rings"));
  EXPECT_EQ(base.at("network.rings"), schema::BaseValue(std::int64_t{3}));
}

TEST(ToyTopology, DeliversMessagesOnBothEngines) {
  for (const auto engine : {NetworkDescription::Engine::packet, NetworkDescription::Engine::flit}) {
    MachineDescription description = star();
    description.network.engine = engine;
    Simulation simulation;
    test::Recorder recorder(simulation);
    std::vector<NodeId> nodes(description.network.topology.node_count());
    for (NodeId node = 0; node < nodes.size(); ++node) nodes[node] = node;
    Machine machine(simulation, description, nodes);
    machine.set_sink(recorder);
    std::size_t posted = 0;
    for (ProcessId source = 0; source < nodes.size(); ++source) {
      for (ProcessId target = 0; target < nodes.size(); ++target) {
        if (source == target) continue;
        machine.post(Time::zero(), {.source = source, .target = target, .bytes = 3000, .message = posted});
        ++posted;
      }
    }
    simulation.run();
    EXPECT_EQ(recorder.of(CompletionKind::arrived).size(), posted);
  }
}

TEST(ToyTopology, IsInTheSchema) {
  const Schema schema = machine_schema();
  const auto keys =
      std::find_if(schema.topologies.begin(), schema.topologies.end(),
                   [](const TopologyKeys& topology) { return topology.name == "star-of-rings"; });
  using Names = std::vector<std::string>;
  ASSERT_NE(keys, schema.topologies.end());
  EXPECT_EQ(keys->needs, (Names{"rings", "routing", "link"}));
  EXPECT_EQ(keys->allows, (Names{"nodes_per_ring", "table_file", "reconfiguration_us"}));
  EXPECT_EQ(keys->routings, (Names{"up-down", "table"}));
  EXPECT_EQ(keys->links, (Names{"ring", "spoke"}));
  const std::vector<schema::ListedField>& fields = schema.sections.at(0).fields;
  EXPECT_EQ(fields.at(0).choices.back(), "star-of-rings");
  const auto rings = std::find_if(fields.begin(), fields.end(),
                                  [](const schema::ListedField& field) { return field.key == "rings"; });
  ASSERT_NE(rings, fields.end());
  EXPECT_EQ(rings->most, 64);
  EXPECT_TRUE(rings->is_optional) << "other topologies lack it";
}

TEST(ToyTopology, RefusesByKey) {
  using Text = std::string;
  EXPECT_EQ(refusal_of_star({{"network.rings", std::int64_t{1}}}),
            "network.rings = 1: expected two rings or more");
  EXPECT_EQ(refusal_of_star({{"network.rings", 1.5}}), "network.rings = 1.5: expected a whole number");
  EXPECT_EQ(refusal_of_star({{"network.nodes", std::int64_t{4}}}),
            "network.nodes = 4: expected a key of this machine");
  EXPECT_EQ(refusal_of_star({{"network.routing", Text("dimension-order")}}),
            "network.routing = dimension-order: expected a routing for network.topology = star-of-rings; "
            "dimension-order is for torus and mesh and twisted-torus");
  EXPECT_EQ(refusal_of_star({{"network.topology", Text("star")}}),
            "network.topology = \"star\": expected one of 'none', 'torus', 'mesh', 'twisted-torus', "
            "'fat-tree', 'crossbar', "
            "'graph', 'star-of-rings'");
}

}  // namespace
}  // namespace apenet
