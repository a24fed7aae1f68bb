// The cards that the contract tests run on, each in a machine of 16 nodes.
#pragma once

#include <ostream>
#include <vector>

#include "machine/machine.hpp"

namespace apenet::test {

struct ContractCard {
  const char* name;
  MachineDescription (*machine)();
  // A reliable connection: `sent` is reported when the target has the message.
  bool sent_is_acknowledged = false;
};

inline void PrintTo(const ContractCard& card, std::ostream* out) {
  *out << card.name;
}

// Each card as its machine file has it, and with resources so scarce that everything waits for everything.
[[nodiscard]] std::vector<ContractCard> contract_cards();

// Those that can carry messages between processes of one node, doing so; without sanitizers with both
// engines.
[[nodiscard]] std::vector<ContractCard> loop_back_cards();

}  // namespace apenet::test
