#include "kernel/counters.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace apenet {

Counters::Index Counters::define(std::string name) {
  const bool is_taken = std::any_of(counters_.begin(), counters_.end(),
                                    [&name](const Counter& counter) { return counter.name == name; });
  if (is_taken) throw std::invalid_argument("counter " + name + " is defined twice; names are unique");
  counters_.push_back({std::move(name), 0});
  return counters_.size() - 1;
}

}  // namespace apenet
