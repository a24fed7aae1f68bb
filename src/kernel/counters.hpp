// Counters: what happened how often, for the report of a run.
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

// Names are given once, when a machine is wired; counting is an addition at an index. Reports list the
// counters in the order of their definition, which is that of the wiring.
class Counters {
 public:
  using Index = std::size_t;

  // Throws std::invalid_argument if the name is taken.
  Index define(std::string name);
  void add(Index index, std::uint64_t amount = 1) { counters_[index].value += amount; }
  [[nodiscard]] std::uint64_t value(Index index) const { return counters_[index].value; }
  [[nodiscard]] const std::vector<Counter>& all() const { return counters_; }

 private:
  std::vector<Counter> counters_;
};

}  // namespace apenet
