// A toy card, for the test that a card needs nothing but its folder and its registration.
#pragma once

#include <cstdint>
#include <memory>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"
#include "nic/card_kind.hpp"
#include "schema/fields.hpp"

namespace apenet::toy {

struct Description {
  static constexpr CardKind kind{.name = "toy", .has_network = false, .has_bus = false};
  ClockDomain clock;
  std::int64_t word_bytes = 0;
  Time latency = Time::from_ns(100);
  bool is_doubled = false;
};

inline void list_fields(schema::Fields& fields, Description& card) {
  using namespace schema::ranges;
  fields("clock_mhz", card.clock, positive, "clock of the card");
  fields("word_bytes", card.word_bytes, count.up_to(64), "what it moves in one clock");
  fields("latency_ns", card.latency, positive.optional(), "of every message, the doorbell included");
  fields("send", card.is_doubled, schema::Choice{"once", "twice"}.optional(), "how often it sends a message");
}

void validate(const Description& card);
[[nodiscard]] CardTraits traits_of(const Description& card, const HostDescription& host);
[[nodiscard]] std::unique_ptr<CardSet> make_set(const Description& card,
                                                const CardSurroundings& surroundings);

}  // namespace apenet::toy
