// The ideal card and the fabric as plain data, in base units: times and rates, and no mechanism.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"
#include "nic/card_kind.hpp"
#include "schema/fields.hpp"

namespace apenet {

// A constant latency and bandwidth between any two processes: latency + b / rate.
struct IdealDescription {
  static constexpr CardKind kind{"ideal", false, false};
  Time latency;
  DataRate rate;
};

inline void list_fields(schema::Fields& fields, IdealDescription& card) {
  using namespace schema::ranges;
  fields("latency_ns", card.latency, positive, "from the post to the arrival, the doorbell included");
  fields("bandwidth_mib_s", card.rate, positive, "of a card: its messages follow one another");
}

// A resource that messages pass one after another. A message of b bytes holds it for gap + b / rate, and is
// in the target's memory latency + b / transit after that; without transit, latency. A value per protocol.
struct FabricPath {
  std::vector<Time> latency;
  std::vector<Time> gap;
  std::vector<DataRate> rate;
  std::vector<DataRate> transit;
};

inline void list_fields(schema::Fields& fields, FabricPath& path) {
  using namespace schema::ranges;
  fields("latency_ns", path.latency, schema::List{not_negative},
         "from free of the path to arrival, the doorbell included");
  fields("gap_ns", path.gap, schema::List{not_negative}, "that a message holds the path, beside its bytes");
  fields("bandwidth_mib_s", path.rate, schema::List{positive}, "at which its bytes hold the path");
  fields("transit_bandwidth_mib_s", path.transit, schema::List{positive}.optional(),
         "at which its bytes travel after that; absent: at once");
}

// A fabric of which only times are known. A message takes all paths at once, and the slowest decides.
// Messages of up to switch_bytes[i] travel by protocol i, larger ones by the last.
struct FabricDescription {
  static constexpr CardKind kind{"fabric", false, true};
  std::vector<std::int64_t> switch_bytes;
  std::vector<std::pair<std::string, FabricPath>> paths;
};

inline void list_fields(schema::Fields& fields, FabricDescription& card) {
  using namespace schema::ranges;
  fields("switch_bytes", card.switch_bytes, schema::List{size_or_zero}.optional(),
         "largest message of each protocol but the last; absent: there is one protocol");
  fields.tables("paths", card.paths);
}

void validate(const IdealDescription& card, const HostDescription& host);
void validate(const FabricDescription& card, const HostDescription& host);
[[nodiscard]] CardFacts facts_of(const IdealDescription& card, const HostDescription& host);
[[nodiscard]] CardFacts facts_of(const FabricDescription& card, const HostDescription& host);
[[nodiscard]] std::unique_ptr<CardSet> make_set(const IdealDescription& card,
                                                const CardSurroundings& surroundings);
[[nodiscard]] std::unique_ptr<CardSet> make_set(const FabricDescription& card,
                                                const CardSurroundings& surroundings);

}  // namespace apenet
