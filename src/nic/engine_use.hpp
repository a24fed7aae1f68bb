// EngineUse: how busy the engines of cards are, and how long work waits for them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel/time.hpp"
#include "network/network.hpp"

namespace apenet {

// Counters of one engine, which does one piece of work at a time. A card whose timings are memoised lists
// them.
struct EngineUse {
  Time busy;
  Time waited;  // all pieces of work, from when they were there until the engine began
  std::uint64_t taken = 0;

  void take(Time there, Time begin, Time span) {
    busy += span;
    if (begin > there) waited += begin - there;
    ++taken;
  }
};

// Adds engine by engine: those of one name are one entry.
class EngineList {
 public:
  explicit EngineList(std::vector<PortUse>& entries) : entries_(entries) {}

  void add(std::string_view name, const EngineUse& engine) {
    PortUse* entry = nullptr;
    for (PortUse& one : entries_) entry = one.name == name ? &one : entry;
    if (entry == nullptr) {
      entries_.push_back({.name = std::string(name), .busy = {}, .packets = 0, .waited = Time::zero()});
      entry = &entries_.back();
    }
    entry->busy.push_back(engine.busy);
    entry->packets += engine.taken;
    entry->waited += engine.waited;
  }

 private:
  std::vector<PortUse>& entries_;
};

}  // namespace apenet
