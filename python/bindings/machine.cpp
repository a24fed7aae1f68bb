// Machines: from the values of a machine file to what the core wires.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "bindings.hpp"
#include "machine/describe.hpp"
#include "machine/machine.hpp"
#include "machine/node_name.hpp"
#include "machine/rails.hpp"
#include "network/routing/arrangement.hpp"

namespace nb = nanobind;

namespace apenet {

namespace {

std::optional<std::int64_t> most_processes(const MachineDescription& machine) {
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (std::uint8_t rail = 0; rail < rail_count(machine); ++rail) {
    const MachineDescription alone = rail_alone(machine, rail);
    most = std::min(most, card_traits(alone.nic, alone.host).max_processes);
  }
  return most == std::numeric_limits<std::int64_t>::max() ? std::nullopt : std::optional(most);
}

void bind_description(nb::module_& module) {
  nb::enum_<NetworkDescription::Engine>(module, "Engine")
      .value("packet", NetworkDescription::Engine::packet)
      .value("flit", NetworkDescription::Engine::flit);
  nb::class_<NetworkDescription>(module, "NetworkDescription");
  nb::class_<MachineDescription>(module, "MachineDescription")
      .def_ro("network", &MachineDescription::network)
      .def_prop_ro("processes_per_node", &most_processes,
                   "That can share the cards of a node; None: any number.")
      .def("node_name", &node_name, nb::arg("node"), "The host name of a node, as programs see it.")
      .def("base_units", &base_units, "What the machine is in base units, by the keys of its file.");
  module.def(
      "describe",
      [](schema::Entries values, std::uint64_t seed, NetworkDescription::Engine engine,
         const std::vector<std::string>& faults) {
        MachineDescription machine = describe(std::move(values));
        machine.seed = seed;
        set_engine(machine, engine);
        set_faults(machine, faults);
        return machine;
      },
      nb::arg("values"), nb::arg("seed"), nb::arg("engine"), nb::arg("faults"),
      "The machine of these values, by their keys. Raises ValueError naming key, value and expectation.");
}

}  // namespace

void bind_machine(nb::module_& module) {
  const nb::object base = nb::module_::import_("apenet.base.errors").attr("PartitionError");
  nb::exception<NetworkPartitioned>(module, "NetworkPartitioned", base);
  nb::exception<PastEndOfTime>(module, "PastEndOfTime",
                               nb::module_::import_("apenet.base.errors").attr("EndOfTimeError"));
  bind_schema(module);
  bind_description(module);
  nb::class_<ArrangementTraits>(module, "ArrangementTraits")
      .def_ro("nodes", &ArrangementTraits::nodes)
      .def_ro("routers", &ArrangementTraits::routers)
      .def_ro("ports_per_router", &ArrangementTraits::ports_per_router)
      .def_ro("cables", &ArrangementTraits::cables)
      .def_ro("channel_classes", &ArrangementTraits::channel_classes)
      .def_ro("is_free_of_deadlock", &ArrangementTraits::is_free_of_deadlock)
      .def_ro("proof", &ArrangementTraits::proof);
  module.def("inspect_arrangement", &inspect_arrangement, nb::arg("network"),
             "Topology, routing and the deadlock check; raises ValueError when the network cannot be built.");
  module.def(
      "count_network_nodes", [](const NetworkDescription& network) { return network.topology.node_count(); },
      nb::arg("network"), "Nodes of a network; raises ValueError when it cannot be built.");
  module.def(
      "wire",
      [](const MachineDescription& description, std::vector<NodeId> node_of_process) {
        Simulation simulation(description.seed);
        const Machine machine(simulation, description, std::move(node_of_process));
        return machine.node_count();
      },
      nb::arg("description"), nb::arg("node_of_process"),
      "Wires the machine and drops it: raises ValueError when that cannot be done. Returns the number of "
      "nodes.");
}

}  // namespace apenet
