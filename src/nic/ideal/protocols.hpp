// The protocols of an ideal card: how messages up to a size travel.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"
#include "nic/card_kind.hpp"

namespace apenet::ideal {

// As FabricPath, of one protocol.
struct Path {
  Time latency;
  Time gap;
  DataRate rate;
  std::optional<DataRate> transit;
};

struct Protocol {
  std::int64_t max_message_bytes = std::numeric_limits<std::int64_t>::max();
  std::vector<Path> paths;
};

// By rising size, the last without a limit. Path i is the same resource in all of them.
using Protocols = std::vector<Protocol>;

// For a card whose messages travel by these; for every kind of card that has no other mechanism.
void require_latency(const Protocols& protocols);
[[nodiscard]] CardTraits traits_of(const Protocols& protocols, const HostDescription& host);
[[nodiscard]] std::unique_ptr<CardSet> make_set(Protocols protocols, const CardSurroundings& surroundings);

}  // namespace apenet::ideal
