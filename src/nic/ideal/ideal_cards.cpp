#include "nic/ideal/ideal_cards.hpp"

#include <algorithm>

#include "kernel/refuse.hpp"
#include "nic/ideal/ideal_nic.hpp"

namespace apenet {

namespace {

class IdealSet final : public CardSet {
 public:
  IdealSet(const IdealDescription& card, const CardSurroundings& surroundings) {
    const Time doorbell_delay = facts_of(card, surroundings.host).doorbell_delay;
    for (NodeId node = 0; node < surroundings.nodes; ++node) {
      nics_.push_back(std::make_unique<IdealNic>(surroundings.simulation, card, doorbell_delay, node,
                                                 surroundings.messages, surroundings.placement, nics_));
    }
  }
  Nic& card(NodeId node) override { return *nics_[node]; }
  void count(std::vector<Counter>& /*counters*/) const override {}
  void warn(std::vector<std::string>& /*warnings*/) const override {}

 private:
  IdealNics nics_;
};

}  // namespace

void validate(const IdealDescription& card, const HostDescription& host) {
  require_positive_time("card.latency_ns", card.latency, "it is what lets processes run ahead of the model");
  if (card.rate.bytes <= 0 || card.rate.per_cycles <= 0 || card.rate.frequency_hz <= 0) {
    refuse_value("card.bandwidth_mib_s", std::to_string(card.rate.bytes) + " bytes per cycle",
                 "more than zero");
  }
  require_duration("bus.pio_write_latency_ns", host.bus.pio_write_latency);
}

// The doorbell is a part of the latency; without one of its own it is all of it, so that processes may run as
// far ahead as anything allows.
CardFacts facts_of(const IdealDescription& card, const HostDescription& host) {
  const Time pio = host.bus.pio_write_latency;
  return {.capabilities = IdealNic::capabilities_of(card),
          .has_network = false,
          .doorbell_delay = pio > Time::zero() ? std::min(pio, card.latency) : card.latency};
}

std::unique_ptr<CardSet> make_set(const IdealDescription& card, const CardSurroundings& surroundings) {
  return std::make_unique<IdealSet>(card, surroundings);
}

}  // namespace apenet
