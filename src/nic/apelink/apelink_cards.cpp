#include "kernel/refuse.hpp"
#include "nic/apelink/apelink_nic.hpp"
#include "nic/bus_cards.hpp"
#include "nic/card_set.hpp"

namespace apenet {

namespace {

class ApelinkSet final : public CardSet {
 public:
  ApelinkSet(const ApelinkDescription& card, const CardSurroundings& surroundings)
      : cards_(ape_cards(card, surroundings, card.clock.cycles(card.lookup_cycles))),
        nodes_(surroundings, [&](Bus& bus, NodeId /*node*/, EventSource source) {
          return ApelinkNic({cards_, bus, nullptr, source});
        }) {}

  Nic& card(NodeId node) override { return nodes_[node]; }
  void prepare(NodeId node, EventHandler::Ahead ahead) const override {
    if (ahead == EventHandler::Ahead::far) {
      nodes_.prepare(node);
    } else {
      nodes_[node].prepare_doorbell();
    }
  }

  void count(std::vector<Counter>& counters) const override { append_counters(cards_.counters, counters); }

  void warn(std::vector<std::string>& warnings) const override {
    append_warnings(cards_.counters, "APELink", warnings);
  }

 private:
  ApeCards cards_;
  BusCards<ApelinkNic> nodes_;
};

}  // namespace

void validate(const ApelinkDescription& card, const HostDescription& /*host*/) {
  validate_common(card);
}

CardFacts facts_of(const ApelinkDescription& card, const HostDescription& host) {
  return ape_card_facts(card, ape_card_capabilities(card), host);
}

std::unique_ptr<CardSet> make_set(const ApelinkDescription& card, const CardSurroundings& surroundings) {
  return std::make_unique<ApelinkSet>(card, surroundings);
}

}  // namespace apenet
