#include "nic/ideal/ideal_cards.hpp"

#include <algorithm>

#include "kernel/refuse.hpp"
#include "nic/ideal/ideal_nic.hpp"

namespace apenet {

namespace {

class IdealSet final : public CardSet {
 public:
  IdealSet(const IdealDescription& card, const CardSurroundings& surroundings) : description_(card) {
    const Time doorbell_delay = facts_of(card, surroundings.host).doorbell_delay;
    for (NodeId node = 0; node < surroundings.nodes; ++node) {
      nics_.push_back(std::make_unique<IdealNic>(surroundings.simulation, description_, doorbell_delay, node,
                                                 surroundings.messages, surroundings.placement, nics_));
    }
  }
  Nic& card(NodeId node) override { return *nics_[node]; }
  void count(std::vector<Counter>& /*counters*/) const override {}
  void warn(std::vector<std::string>& /*warnings*/) const override {}

 private:
  IdealDescription description_;  // shared by all cards
  IdealNics nics_;
};

void validate_rate(const char* key, DataRate rate) {
  if (rate.bytes <= 0 || rate.per_cycles <= 0 || rate.frequency_hz <= 0) {
    refuse_value(key, std::to_string(rate.bytes) + " bytes per cycle", "more than zero");
  }
}

void validate(const IdealPath& path) {
  require_duration("card.latency_ns", path.latency);
  require_duration("card.gap_ns", path.gap);
  validate_rate("card.bandwidth_mib_s", path.rate);
  if (path.transit) validate_rate("card.transit_bandwidth_mib_s", *path.transit);
}

}  // namespace

void validate(const IdealDescription& card, const HostDescription& host) {
  if (card.protocols.empty()) refuse_value("card.paths", "none", "at least one");
  const std::size_t paths = card.protocols.front().paths.size();
  std::int64_t below = -1;
  for (const IdealProtocol& protocol : card.protocols) {
    if (protocol.paths.empty() || protocol.paths.size() != paths) {
      refuse_value("card.paths", std::to_string(protocol.paths.size()),
                   "at least one, the same in every protocol");
    }
    if (protocol.max_message_bytes <= below) {
      refuse_value("card.switch_bytes", std::to_string(protocol.max_message_bytes), "sizes that rise");
    }
    below = protocol.max_message_bytes;
    for (const IdealPath& path : protocol.paths) validate(path);
  }
  require_positive_time("card.latency_ns", IdealNic::control_latency(card),
                        "processes may run ahead of the model by this time");
  require_duration("bus.pio_write_latency_ns", host.bus.pio_write_latency);
}

// The doorbell delay is part of the latency. If the bus has no delay, the whole latency counts as doorbell
// delay, so that processes may run as far ahead as possible.
CardFacts facts_of(const IdealDescription& card, const HostDescription& host) {
  const Time pio = host.bus.pio_write_latency;
  const Time latency = IdealNic::control_latency(card);
  return {.capabilities = IdealNic::capabilities_of(card),
          .has_network = false,
          .doorbell_delay = pio > Time::zero() ? std::min(pio, latency) : latency};
}

std::unique_ptr<CardSet> make_set(const IdealDescription& card, const CardSurroundings& surroundings) {
  return std::make_unique<IdealSet>(card, surroundings);
}

}  // namespace apenet
