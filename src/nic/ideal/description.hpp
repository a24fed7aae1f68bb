// The ideal card as plain data, in base units.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"

namespace apenet {

// A resource that messages pass one after another. A message of b bytes holds it for gap + b / rate, and is
// in the target's memory latency + b / transit after that; without transit, latency.
struct IdealPath {
  Time latency;  // the doorbell's way included
  Time gap;
  DataRate rate;
  std::optional<DataRate> transit;
};

// How messages up to a size travel: on all paths at once, and the slowest decides.
struct IdealProtocol {
  std::int64_t max_message_bytes = std::numeric_limits<std::int64_t>::max();
  std::vector<IdealPath> paths;
};

// Protocols by rising size, the last without a limit. Path i is the same resource in all of them.
struct IdealDescription {
  std::vector<IdealProtocol> protocols;

  // One path for all messages: latency + b / rate.
  static IdealDescription constant(Time latency, DataRate rate) {
    return {
        {IdealProtocol{.paths = {IdealPath{.latency = latency, .gap = {}, .rate = rate, .transit = {}}}}}};
  }
};

}  // namespace apenet
