// The machines that C++ tests measure: those of machines/*.toml, described as a run describes them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "machine/describe.hpp"

namespace apenet::test {

inline constexpr std::int64_t mib = std::int64_t{1} << 20;

// What the file of a machine says.
[[nodiscard]] schema::Entries machine_values(std::string_view name);

// A machine by its name, with some keys changed, as `--set key=value` does.
[[nodiscard]] inline MachineDescription machine(std::string_view name, const schema::Entries& changes = {}) {
  schema::Entries values = machine_values(name);
  for (const auto& change : changes) {
    const auto found = std::find_if(values.begin(), values.end(),
                                    [&change](const auto& entry) { return entry.first == change.first; });
    if (found == values.end()) {
      values.push_back(change);
    } else {
      found->second = change.second;
    }
  }
  return describe(std::move(values));
}

// The links, switches and adapters of pax, on fewer nodes: switches of four below four others.
[[nodiscard]] inline MachineDescription pax16() {
  using Wholes = std::vector<std::int64_t>;
  return machine("pax", {{"network.children", Wholes{4, 4}}, {"network.parents", Wholes{2}}});
}

// The ideal machine with a byte a nanosecond, for times by hand, and quicker inside a node than between
// nodes.
[[nodiscard]] inline MachineDescription round_ideal() {
  constexpr double byte_per_ns_mib_s = 953.67431640625;
  return machine("ideal", {{"card.bandwidth_mib_s", byte_per_ns_mib_s},
                           {"host.copy_bandwidth_mib_s", 4000.0},
                           {"host.local_latency_ns", 300.0}});
}

}  // namespace apenet::test
