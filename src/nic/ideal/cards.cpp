#include <algorithm>

#include "kernel/refuse.hpp"
#include "nic/card_set.hpp"
#include "nic/ideal/description.hpp"
#include "nic/ideal/nic.hpp"
#include "nic/ideal/protocols.hpp"

namespace apenet::ideal {

namespace {

Protocols protocols_of(const Description& card) {
  return {{.paths = {{.latency = card.latency, .gap = {}, .rate = card.rate, .transit = {}}}}};
}

class Set final : public CardSet {
 public:
  Set(Protocols protocols, const CardSurroundings& surroundings) : protocols_(std::move(protocols)) {
    const Time doorbell_delay = traits_of(protocols_, surroundings.host).doorbell_delay;
    for (NodeId node = 0; node < surroundings.nodes; ++node) {
      nics_.push_back(std::make_unique<Nic>(surroundings.simulation, protocols_, doorbell_delay,
                                            surroundings.source(node), surroundings.messages,
                                            surroundings.placement, nics_));
    }
  }
  Nic& card(NodeId node) override { return *nics_[node]; }
  void list_engines(NodeId node, EngineList& engines) const override { nics_[node]->list_engines(engines); }
  void count(std::vector<Counter>& /*counters*/) const override {}
  void warn(std::vector<std::string>& /*warnings*/) const override {}

 private:
  Protocols protocols_;  // shared by all cards
  Nics nics_;
};

}  // namespace

void require_latency(const Protocols& protocols) {
  require_positive_time("card.latency_ns", Nic::control_latency(protocols),
                        "processes may run ahead of the model by this time");
}

// The doorbell delay is part of the latency. If the bus has no delay, the whole latency counts as doorbell
// delay, so that processes may run as far ahead as possible.
CardTraits traits_of(const Protocols& protocols, const HostDescription& host) {
  const Time pio = host.bus.pio_write_latency;
  const Time latency = Nic::control_latency(protocols);
  constexpr std::int64_t any_size = std::int64_t{1} << 40;
  constexpr std::uint16_t channels = 16;  // an arbitrary number: all channels share one wire
  return {.capabilities = {.put = true,
                           .get = true,
                           .max_message_bytes = any_size,
                           .max_send_bytes = any_size,
                           .max_pio_bytes = any_size,
                           .channels = channels},
          .doorbell_delay = pio > Time::zero() ? std::min(pio, latency) : latency,
          .no_loop_back = "it has no router that could return a message"};
}

std::unique_ptr<CardSet> make_set(Protocols protocols, const CardSurroundings& surroundings) {
  return std::make_unique<Set>(std::move(protocols), surroundings);
}

void validate(const Description& card) {
  require_latency(protocols_of(card));
}

CardTraits traits_of(const Description& card, const HostDescription& host) {
  return traits_of(protocols_of(card), host);
}

std::unique_ptr<CardSet> make_set(const Description& card, const CardSurroundings& surroundings) {
  return make_set(protocols_of(card), surroundings);
}

}  // namespace apenet::ideal
