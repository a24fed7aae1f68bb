// BusCards: the cards of a machine that are at a bus. BusCardSet: their CardSet.
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
      : buses_(surroundings.simulation, surroundings.host.bus), nodes_(surroundings.nodes) {
    for (NodeId node = 0; node < surroundings.nodes; ++node) {
      nodes_.emplace_back(surroundings, buses_, node, make);
    }
  }

  [[nodiscard]] Bus& bus(NodeId node) { return nodes_[node].bus; }
  [[nodiscard]] Buses::Counters& bus_counters() { return buses_.counters; }

  [[nodiscard]] Card& operator[](NodeId node) { return nodes_[node].card; }
  [[nodiscard]] const Card& operator[](NodeId node) const { return nodes_[node].card; }
  // Prefetches the node's card and bus, which will soon be used.
  [[gnu::always_inline]] void prepare(NodeId node) const { prefetch(nodes_[node]); }

 private:
  // A card and its bus, adjacent in memory. The bus is idle where the card is at the bus of another one.
  struct Node {
    template <typename Make>
    Node(const CardSurroundings& surroundings, Buses& buses, NodeId node, const Make& make)
        : bus(buses, surroundings.first_source + node),
          // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): such a node has a bus
          card(make(surroundings.at_bus_of != nullptr ? *surroundings.at_bus_of->bus(node) : bus, node,
                    surroundings.source(node))) {}
    Bus bus;
    Card card;
  };

  Buses buses_;
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
  Bus* bus(NodeId node) final { return &nodes_.bus(node); }

 protected:
  Cards cards_;
  BusCards<Card> nodes_;
};

}  // namespace apenet
