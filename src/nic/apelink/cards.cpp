#include "kernel/refuse.hpp"
#include "nic/apelink/nic.hpp"
#include "nic/bus_cards.hpp"
#include "nic/card_set.hpp"

namespace apenet::apelink {

namespace {

class Set final : public CardSet {
 public:
  Set(const Description& card, const CardSurroundings& surroundings)
      : cards_(card, surroundings, card.clock.cycles(card.lookup_cycles)),
        nodes_(surroundings, [&](Bus& bus, NodeId /*node*/, EventSource source) {
          return Nic({cards_, bus, nullptr, {source}});
        }) {}

  Nic& card(NodeId node) override { return nodes_[node]; }
  Bus* bus(NodeId node) override { return &nodes_.bus(node); }
  void prepare(NodeId node, EventHandler::Ahead ahead) const override {
    if (ahead == EventHandler::Ahead::far) {
      nodes_.prepare(node);
    } else {
      nodes_[node].prepare_doorbell();
    }
  }

  // A descriptor's write reaches back by its clocks on the bus.
  bool list_state(NodeId source, NodeId target, StateList& list) override {
    nodes_[source].list_state(list);
    nodes_[target].list_state(list);
    list.counters(cards_.counters);
    list.counters(nodes_.bus_counters());
    list.reach(nodes_.bus(source).occupancy(cards_.description.descriptor_bytes));
    return true;
  }

  void list_engines(NodeId node, EngineList& engines) const override { nodes_[node].list_engines(engines); }

  void count(std::vector<Counter>& counters) const override { append_counters(cards_.counters, counters); }

  void warn(std::vector<std::string>& warnings) const override {
    append_warnings(cards_.counters, "APELink", warnings);
  }

 private:
  Cards cards_;
  BusCards<Nic> nodes_;
};

}  // namespace

void validate(const Description& card) {
  validate_common(card);
}

CardTraits traits_of(const Description& card, const HostDescription& host) {
  return common_traits(card, host);
}

std::unique_ptr<CardSet> make_set(const Description& card, const CardSurroundings& surroundings) {
  return std::make_unique<Set>(card, surroundings);
}

}  // namespace apenet::apelink
