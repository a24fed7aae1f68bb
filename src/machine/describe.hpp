// Reads a machine file's values into a MachineDescription. Python and the C++ tests both use it.
#pragma once

#include <vector>

#include "machine/description.hpp"
#include "network/describe.hpp"
#include "nic/card_set.hpp"
#include "schema/listing.hpp"
#include "schema/values.hpp"

namespace apenet {

// Every key that a machine file may have.
struct Schema {
  std::vector<schema::Section> sections;  // all but [card]
  std::vector<CardSection> cards;
  std::vector<TopologyKeys> topologies;
};
[[nodiscard]] Schema machine_schema();

// Makes a description of the values of a machine file. For a key that names a file, the value is the file's
// text.
// Throws std::invalid_argument naming the key, its value and what was expected.
[[nodiscard]] MachineDescription describe(schema::Entries entries);

// Gives each rail the faults of its network. Those of a further rail begin with "NAME: ". Throws
// std::invalid_argument for an unknown name.
void set_faults(MachineDescription& machine, const std::vector<std::string>& faults);

// The engine of the networks of all rails.
void set_engine(MachineDescription& machine, NetworkDescription::Engine engine);

// The values of a description in base units, by the keys of the machine files.
[[nodiscard]] schema::BaseValues base_units(const MachineDescription& description);

}  // namespace apenet
