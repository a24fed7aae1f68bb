// From a machine file to a machine's description: the one way, for Python and for the tests.
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
  std::vector<schema::Section> sections;  // but [card]
  std::vector<CardSection> cards;
  std::vector<TopologyKeys> topologies;
};
[[nodiscard]] Schema machine_schema();

// The description of what a machine file says. Of a key that names a file, the value is the file's text.
// Throws std::invalid_argument naming the key, its value and what was expected.
[[nodiscard]] MachineDescription describe(schema::Entries entries);

// What a description holds in base units, by the keys of the machine files.
[[nodiscard]] schema::BaseValues base_units(const MachineDescription& description);

}  // namespace apenet
