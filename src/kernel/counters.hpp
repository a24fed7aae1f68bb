// Counters: named event counts for the report of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace apenet {

struct Counter {
  std::string name;
  std::uint64_t value = 0;
};

// Names are defined once, when a machine is wired; counting adds at an index. Reports list the counters in
// the order of definition, which is the order of wiring.
class Counters {
 public:
  using Index = std::size_t;

  // Throws std::invalid_argument if the name is already defined.
  Index define(std::string name);
  void add(Index index, std::uint64_t amount = 1) { counters_[index].value += amount; }
  [[nodiscard]] std::uint64_t value(Index index) const { return counters_[index].value; }
  [[nodiscard]] const std::vector<Counter>& all() const { return counters_; }

 private:
  std::vector<Counter> counters_;
};

}  // namespace apenet
