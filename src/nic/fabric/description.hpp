// The fabric as plain data, in base units: times and rates, and no mechanism.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"
#include "nic/card_kind.hpp"
#include "schema/fields.hpp"

namespace apenet::fabric {

// A resource that messages pass one after another. A message of b bytes holds it for gap + b / rate, and is
// in the target's memory latency + b / transit after that; without transit, latency. A value per protocol.
struct Path {
  std::vector<Time> latency;
  std::vector<Time> gap;
  std::vector<DataRate> rate;
  std::vector<DataRate> transit;
};

inline void list_fields(schema::Fields& fields, Path& path) {
  using namespace schema::ranges;
  fields("latency_ns", path.latency, schema::List{not_negative},
         "from the release of the path to the arrival, the doorbell included");
  fields("gap_ns", path.gap, schema::List{not_negative},
         "time that a message holds the path, beside its bytes");
  fields("bandwidth_mib_s", path.rate, schema::List{positive},
         "rate at which a message's bytes hold the path");
  fields("transit_bandwidth_mib_s", path.transit, schema::List{positive}.optional(),
         "rate at which they travel after that; absent: at once");
}

// A fabric of which only times are known. A message uses all paths at the same time, and the slowest decides.
// Messages of up to switch_bytes[i] travel by protocol i, larger ones by the last.
struct Description {
  static constexpr CardKind kind{.name = "fabric", .has_network = false};
  std::vector<std::int64_t> switch_bytes;
  std::vector<std::pair<std::string, Path>> paths;
};

inline void list_fields(schema::Fields& fields, Description& card) {
  using namespace schema::ranges;
  fields("switch_bytes", card.switch_bytes, schema::List{size_or_zero}.optional(),
         "largest message of each protocol but the last; absent: there is one protocol");
  fields.tables("paths", card.paths);
}

void validate(const Description& card);
[[nodiscard]] CardTraits traits_of(const Description& card, const HostDescription& host);
[[nodiscard]] std::unique_ptr<CardSet> make_set(const Description& card,
                                                const CardSurroundings& surroundings);

}  // namespace apenet::fabric
