#include "nic/apelink/apelink_cards.hpp"

#include "host/bus.hpp"
#include "kernel/refuse.hpp"
#include "nic/apelink/apelink_nic.hpp"

namespace apenet {

namespace {

// The card of a node and its bus: beside each other in memory.
struct ApelinkNode {
  ApelinkNode(ApeCards& cards, BusKind& bus_kind, const ApelinkDescription& description,
              Slab<Packet>& being_written, NodeId node)
      : bus(cards.simulation, bus_kind, node),
        nic({cards, bus, nullptr, node, {EventKind::nic, node, 0}}, description, being_written) {}
  Bus bus;
  ApelinkNic nic;
};

class ApelinkSet final : public CardSet {
 public:
  ApelinkSet(const ApelinkDescription& card, const CardSurroundings& surroundings)
      : bus_kind_(surroundings.host.bus), cards_(ape_cards(card, surroundings)) {
    nodes_.reserve(surroundings.nodes);
    for (NodeId node = 0; node < surroundings.nodes; ++node) {
      nodes_.push_back(std::make_unique<ApelinkNode>(cards_, bus_kind_, card, being_written_, node));
    }
  }

  Nic& card(NodeId node) override { return nodes_[node]->nic; }

  void count(std::vector<Counter>& counters) const override { append_counters(cards_.counters, counters); }

  void warn(std::vector<std::string>& warnings) const override {
    append_warnings(cards_.counters, "APELink", warnings);
  }

 private:
  BusKind bus_kind_;
  ApeCards cards_;
  Slab<Packet> being_written_;
  std::vector<std::unique_ptr<ApelinkNode>> nodes_;
};

}  // namespace

void validate(const ApelinkDescription& card, const HostDescription& host) {
  validate(host.bus);
  validate_common(card);
  require_at_least("card.lookup_cycles", card.lookup_cycles, 0);
}

CardFacts facts_of(const ApelinkDescription& card, const HostDescription& host) {
  return ape_card_facts(card, ape_card_capabilities(card), host);
}

std::unique_ptr<CardSet> make_set(const ApelinkDescription& card, const CardSurroundings& surroundings) {
  return std::make_unique<ApelinkSet>(card, surroundings);
}

}  // namespace apenet
