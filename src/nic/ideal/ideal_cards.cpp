#include <algorithm>

#include "kernel/refuse.hpp"
#include "nic/card_set.hpp"
#include "nic/ideal/ideal_nic.hpp"
#include "nic/ideal/protocols.hpp"

namespace apenet {

namespace {

// The doorbell delay is part of the latency. If the bus has no delay, the whole latency counts as doorbell
// delay, so that processes may run as far ahead as possible.
CardFacts facts_of(const IdealProtocols& protocols, const HostDescription& host) {
  const Time pio = host.bus.pio_write_latency;
  const Time latency = IdealNic::control_latency(protocols);
  return {.capabilities = IdealNic::any_capabilities(),
          .doorbell_delay = pio > Time::zero() ? std::min(pio, latency) : latency};
}

class IdealSet final : public CardSet {
 public:
  IdealSet(IdealProtocols protocols, const CardSurroundings& surroundings)
      : protocols_(std::move(protocols)) {
    const Time doorbell_delay = facts_of(protocols_, surroundings.host).doorbell_delay;
    for (NodeId node = 0; node < surroundings.nodes; ++node) {
      nics_.push_back(std::make_unique<IdealNic>(surroundings.simulation, protocols_, doorbell_delay, node,
                                                 surroundings.messages, surroundings.placement, nics_));
    }
  }
  Nic& card(NodeId node) override { return *nics_[node]; }
  void count(std::vector<Counter>& /*counters*/) const override {}
  void warn(std::vector<std::string>& /*warnings*/) const override {}

 private:
  IdealProtocols protocols_;  // shared by all cards
  IdealNics nics_;
};

template <typename Value>
void require_one_each(const std::string& key, const std::vector<Value>& values, std::size_t protocols) {
  if (values.size() == protocols) return;
  refuse_value(
      key, std::to_string(values.size()) + " values",
      std::to_string(protocols) + " values, one for each protocol: one more than card.switch_bytes has");
}

void require_latency(const IdealProtocols& protocols) {
  require_positive_time("card.latency_ns", IdealNic::control_latency(protocols),
                        "processes may run ahead of the model by this time");
}

}  // namespace

IdealProtocols protocols_of(const IdealDescription& card) {
  return {{.paths = {{.latency = card.latency, .gap = {}, .rate = card.rate, .transit = {}}}}};
}

IdealProtocols protocols_of(const FabricDescription& card) {
  IdealProtocols protocols(card.switch_bytes.size() + 1);
  for (std::size_t i = 0; i < protocols.size(); ++i) {
    if (i < card.switch_bytes.size()) protocols[i].max_message_bytes = card.switch_bytes[i];
    for (const auto& [name, path] : card.paths) {
      protocols[i].paths.push_back({path.latency[i], path.gap[i], path.rate[i], {}});
      if (!path.transit.empty()) protocols[i].paths.back().transit = path.transit[i];
    }
  }
  return protocols;
}

void validate(const IdealDescription& card, const HostDescription& /*host*/) {
  require_latency(protocols_of(card));
}

void validate(const FabricDescription& card, const HostDescription& /*host*/) {
  const std::vector<std::int64_t>& switches = card.switch_bytes;
  if (std::adjacent_find(switches.begin(), switches.end(), std::greater_equal<>()) != switches.end()) {
    refuse_value("card.switch_bytes", std::to_string(switches.size()) + " sizes", "sizes that rise");
  }
  if (card.paths.empty()) refuse_value("card.paths", "none", "at least one");
  const std::size_t protocols = switches.size() + 1;
  for (const auto& [name, path] : card.paths) {
    const std::string section = "card.paths." + name;
    require_one_each(section + ".latency_ns", path.latency, protocols);
    require_one_each(section + ".gap_ns", path.gap, protocols);
    require_one_each(section + ".bandwidth_mib_s", path.rate, protocols);
    if (!path.transit.empty())
      require_one_each(section + ".transit_bandwidth_mib_s", path.transit, protocols);
  }
  require_latency(protocols_of(card));
}

CardFacts facts_of(const IdealDescription& card, const HostDescription& host) {
  return facts_of(protocols_of(card), host);
}

CardFacts facts_of(const FabricDescription& card, const HostDescription& host) {
  return facts_of(protocols_of(card), host);
}

std::unique_ptr<CardSet> make_set(const IdealDescription& card, const CardSurroundings& surroundings) {
  return std::make_unique<IdealSet>(protocols_of(card), surroundings);
}

std::unique_ptr<CardSet> make_set(const FabricDescription& card, const CardSurroundings& surroundings) {
  return std::make_unique<IdealSet>(protocols_of(card), surroundings);
}

}  // namespace apenet
