// The ideal card as plain data, in base units.
#pragma once

#include "kernel/rate.hpp"
#include "kernel/time.hpp"
#include "nic/card_kind.hpp"
#include "schema/fields.hpp"

namespace apenet::ideal {

// A constant latency and bandwidth between any two processes: latency + b / rate.
struct Description {
  static constexpr CardKind kind{.name = "ideal", .has_network = false, .has_bus = false};
  Time latency;
  DataRate rate;
};

inline void list_fields(schema::Fields& fields, Description& card) {
  using namespace schema::ranges;
  fields("latency_ns", card.latency, positive, "from the post to the arrival, the doorbell included");
  fields("bandwidth_mib_s", card.rate, positive, "rate of a card, whose messages follow one another");
}

void validate(const Description& card);
[[nodiscard]] CardTraits traits_of(const Description& card, const HostDescription& host);
[[nodiscard]] std::unique_ptr<CardSet> make_set(const Description& card,
                                                const CardSurroundings& surroundings);

}  // namespace apenet::ideal
