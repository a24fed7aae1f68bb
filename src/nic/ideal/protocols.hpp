// The protocols of an ideal card: how messages up to a size travel.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"
#include "nic/ideal/description.hpp"

namespace apenet {

// As FabricPath, of one protocol.
struct IdealPath {
  Time latency;
  Time gap;
  DataRate rate;
  std::optional<DataRate> transit;
};

struct IdealProtocol {
  std::int64_t max_message_bytes = std::numeric_limits<std::int64_t>::max();
  std::vector<IdealPath> paths;
};

// By rising size, the last without a limit. Path i is the same resource in all of them.
using IdealProtocols = std::vector<IdealProtocol>;

[[nodiscard]] IdealProtocols protocols_of(const IdealDescription& card);
// Requires that every list has a value for each protocol.
[[nodiscard]] IdealProtocols protocols_of(const FabricDescription& card);

}  // namespace apenet
