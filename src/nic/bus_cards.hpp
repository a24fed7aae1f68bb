// BusCards: the cards of a machine in which each card has its own bus. BusCardSet: their CardSet.
#pragma once

#include "host/bus.hpp"
#include "kernel/large_array.hpp"
#include "nic/card_set.hpp"

namespace apenet {

template <typename Card>
class BusCards {
 public:
  // make(bus, node, source) returns the card of a node. Neither card nor bus is moved afterwards. `source` is
  // the event source of the card.
  template <typename Make>
  BusCards(const CardSurroundings& surroundings, const Make& make)
      : bus_kind_(surroundings.host.bus), nodes_(surroundings.nodes) {
    for (NodeId node = 0; node < surroundings.nodes; ++node) {
      nodes_.emplace_back(surroundings.simulation, bus_kind_, node, make);
    }
  }

  [[nodiscard]] Card& operator[](NodeId node) { return nodes_[node].card; }
  [[nodiscard]] const Card& operator[](NodeId node) const { return nodes_[node].card; }
  // Prefetches the node's card and bus, which will soon be used.
  [[gnu::always_inline]] void prepare(NodeId node) const { prefetch(nodes_[node]); }

 private:
  // A card and its bus, adjacent in memory.
  struct Node {
    template <typename Make>
    Node(Simulation& simulation, BusKind& bus_kind, NodeId node, const Make& make)
        : bus(simulation, bus_kind, node), card(make(bus, node, EventSource{EventKind::nic, node, 0})) {}
    Bus bus;
    Card card;
  };

  BusKind bus_kind_;
  LargeObjects<Node> nodes_;
};

// Cards: what the cards of the kind share, made from its description and surroundings. A kind derives from
// this set to count and to warn.
template <typename Description, typename Cards, typename Card>
class BusCardSet : public CardSet {
 public:
  BusCardSet(const Description& card, const CardSurroundings& surroundings)
      : cards_(card, surroundings), nodes_(surroundings, [this](Bus& bus, NodeId node, EventSource source) {
          return Card({cards_, bus, node, source});
        }) {}

  Card& card(NodeId node) final { return nodes_[node]; }

 protected:
  Cards cards_;
  BusCards<Card> nodes_;
};

}  // namespace apenet
