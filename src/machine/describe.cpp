#include "machine/describe.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "kernel/refuse.hpp"
#include "machine/rails.hpp"
#include "schema/fields.hpp"
#include "schema/lowering.hpp"
#include "schema/unit.hpp"

namespace apenet {

namespace {

// The entries of one rail in a file, by the keys of the first rail.
struct RailEntries {
  std::string name;
  schema::Entries entries;
};

bool begins_with(std::string_view text, std::string_view beginning) {
  return text.substr(0, beginning.size()) == beginning;
}

// Takes the entries rail.NAME.key out of all, by name, in the order of the file.
std::vector<RailEntries> take_rails(schema::Entries& all) {
  std::vector<RailEntries> rails;
  schema::Entries others;
  for (auto& [key, value] : all) {
    constexpr std::string_view section = "rail.";
    const std::size_t dot = key.find('.', section.size());
    if (!begins_with(key, section) || dot == std::string::npos) {
      others.emplace_back(std::move(key), std::move(value));
      continue;
    }
    const std::string name = key.substr(section.size(), dot - section.size());
    auto rail =
        std::find_if(rails.begin(), rails.end(), [&](const RailEntries& one) { return one.name == name; });
    if (rail == rails.end()) rail = rails.insert(rails.end(), {name, {}});
    rail->entries.emplace_back(key.substr(dot + 1), std::move(value));
  }
  all = std::move(others);
  return rails;
}

// Multiplies the times of software, and divides the rate of its copies. An interrupt is the hardware's delay.
class Slowdown final : public schema::Fields {
 public:
  explicit Slowdown(std::int64_t factor) : Fields("software"), factor_(factor) {}

 private:
  void visit(std::string_view key, const schema::Field& field, std::string_view /*meaning*/) override {
    const auto* number = std::get_if<schema::NumberField>(&field);
    if (number == nullptr || key == "interrupt_us") return;
    if (schema::unit_of(key).dimension == schema::Dimension::time) number->value *= factor_;
    if (key == "copy_bandwidth_mib_s") number->value = std::max<std::int64_t>(1, number->value / factor_);
  }

  std::int64_t factor_;
};

void disable_caches(MachineDescription& machine) {
  const std::int64_t factor = machine.host.uncached_factor;
  if (factor == 0) refuse_value("host.uncached_factor", "absent", "a factor, with host.caches = \"off\"");
  Slowdown slowdown(factor);
  list_fields(slowdown, machine.host);
  list_fields(slowdown, machine.card_software);
  list_fields(slowdown, machine.mpi_software);
  list_fields(slowdown, machine.udp_software);
  list_fields(slowdown, machine.ip_software);
}

MachineDescription describe_first(schema::Entries entries) {
  schema::Values values(std::move(entries));
  MachineDescription machine;
  schema::Lowering(values, "machine", false)("name", machine.name, schema::ranges::text, "of the machine");
  machine.network = read_network(values);
  schema::lower(values, "host", machine.host);
  if (values.has_section("bus")) schema::lower(values, "bus", machine.host.bus);
  machine.nic = read_card(values);
  schema::lower(values, "card", machine.interrupts);
  schema::lower(values, "card", machine.same_node);
  schema::lower(values, "software.card", machine.card_software);
  schema::lower(values, "software.mpi", machine.mpi_software);
  if (values.has_section("software.udp")) schema::lower(values, "software.udp", machine.udp_software);
  if (values.has_section("software.ip")) schema::lower(values, "software.ip", machine.ip_software);
  values.require_all_known();
  validate_card(machine.nic, machine.host);
  validate(machine.interrupts);
  if (machine.host.caches_off) disable_caches(machine);
  return machine;
}

// `node`: the entries of the first rail.
RailDescription describe_rail(const std::string& name, schema::Entries own, const schema::Entries& node) {
  RailDescription rail;
  rail.name = name;
  const auto is_slot = [](const auto& entry) { return entry.first == "slot"; };
  const auto slot = std::find_if(own.begin(), own.end(), is_slot);
  schema::Entries of_slot;
  if (slot != own.end()) {
    of_slot.emplace_back("rail." + name + ".slot", slot->second);
    own.erase(slot);
  }
  schema::Values values(std::move(of_slot));
  schema::lower(values, "rail." + name, rail);
  for (const auto& [key, value] : node) {
    const bool is_shared_bus = rail.shares_slot && begins_with(key, "bus.");
    if (begins_with(key, "machine.") || begins_with(key, "host.") || is_shared_bus)
      own.emplace_back(key, value);
  }
  refuse_within("rail." + name, [&] {
    MachineDescription alone = describe_first(std::move(own));
    rail.network = std::move(alone.network);
    rail.bus = alone.host.bus;
    rail.nic = std::move(alone.nic);
    rail.interrupts = alone.interrupts;
    rail.same_node = alone.same_node;
    rail.card_software = alone.card_software;
    rail.mpi_software = alone.mpi_software;
    rail.udp_software = alone.udp_software;
    rail.ip_software = alone.ip_software;
  });
  return rail;
}

}  // namespace

Schema machine_schema() {
  Schema schema;
  schema.sections = network_sections();
  schema.sections.push_back(schema::listed<BusDescription>("bus"));
  schema.sections.push_back(schema::listed<HostDescription>("host"));
  schema.sections.push_back(schema::listed<message::SoftwareCosts>("software"));
  schema.sections.push_back(schema::listed<message::DatagramCosts>("software.udp"));
  schema.sections.push_back(schema::listed<IpDescription>("software.ip"));
  schema.sections.push_back(schema::listed<RailDescription>("rail"));
  schema.cards = card_sections();
  schema.topologies = topology_keys();
  return schema;
}

MachineDescription describe(schema::Entries entries) {
  std::vector<RailEntries> rails = take_rails(entries);
  MachineDescription machine = describe_first(entries);
  for (RailEntries& rail : rails)
    machine.rails.push_back(describe_rail(rail.name, std::move(rail.entries), entries));
  return machine;
}

void set_faults(MachineDescription& machine, const std::vector<std::string>& faults) {
  for (const std::string& fault : faults) {
    const std::size_t colon = fault.find(": ");
    if (colon == std::string::npos) {
      machine.network.faults.push_back(fault);
      continue;
    }
    const std::string name = fault.substr(0, colon);
    const auto rail = std::find_if(machine.rails.begin(), machine.rails.end(),
                                   [&](const RailDescription& one) { return one.name == name; });
    if (rail == machine.rails.end()) {
      std::string known;
      for (const RailDescription& one : machine.rails) known += (known.empty() ? "" : ", ") + one.name;
      refuse_value("fault", '"' + fault + '"',
                   known.empty() ? "no \"NAME: \" in front: the machine has one rail"
                                 : "a rail in front of the colon: " + known);
    }
    rail->network.faults.push_back(fault.substr(colon + 2));
  }
}

void set_engine(MachineDescription& machine, NetworkDescription::Engine engine) {
  machine.network.engine = engine;
  for (RailDescription& rail : machine.rails) rail.network.engine = engine;
}

schema::BaseValues base_units(const MachineDescription& machine) {
  schema::BaseValues values;
  read_base_units(machine.network, values);
  schema::read("host", machine.host, values);
  schema::read("bus", machine.host.bus, values);
  read_base_units(machine.nic, values);
  schema::read("card", machine.interrupts, values);
  schema::read("card", machine.same_node, values);
  schema::read("software.card", machine.card_software, values);
  schema::read("software.mpi", machine.mpi_software, values);
  if (machine.udp_software.mtu_bytes > 0) schema::read("software.udp", machine.udp_software, values);
  if (machine.ip_software.costs.mtu_bytes > 0) schema::read("software.ip", machine.ip_software, values);
  for (std::uint8_t number = 1; number < rail_count(machine); ++number) {
    for (auto& [key, value] : base_units(rail_alone(machine, number))) {
      if (!begins_with(key, "host.")) values[rail_key(machine, number) + '.' + key] = std::move(value);
    }
  }
  return values;
}

}  // namespace apenet
