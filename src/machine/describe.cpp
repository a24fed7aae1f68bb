#include "machine/describe.hpp"

#include <utility>

#include "schema/lowering.hpp"

namespace apenet {

Schema machine_schema() {
  Schema schema;
  schema.sections = network_sections();
  schema.sections.push_back(schema::listed<BusDescription>("bus"));
  schema.sections.push_back(schema::listed<HostDescription>("host"));
  schema.sections.push_back(schema::listed<message::SoftwareCosts>("software"));
  schema.cards = card_sections();
  schema.topologies = topology_keys();
  return schema;
}

MachineDescription describe(schema::Entries entries) {
  schema::Values values(std::move(entries));
  MachineDescription machine;
  schema::Lowering(values, "machine", false)("name", machine.name, schema::ranges::text, "of the machine");
  machine.network = read_network(values);
  schema::lower(values, "host", machine.host);
  if (values.has_section("bus")) schema::lower(values, "bus", machine.host.bus);
  machine.nic = read_card(values);
  schema::lower(values, "software.card", machine.card_software);
  schema::lower(values, "software.mpi", machine.mpi_software);
  values.require_all_known();
  validate_card(machine.nic, machine.host);
  return machine;
}

schema::BaseValues base_units(const MachineDescription& machine) {
  schema::BaseValues values;
  read_base_units(machine.network, values);
  schema::read("host", machine.host, values);
  schema::read("bus", machine.host.bus, values);
  read_base_units(machine.nic, values);
  schema::read("software.card", machine.card_software, values);
  schema::read("software.mpi", machine.mpi_software, values);
  return values;
}

}  // namespace apenet
