// What the folder of a card declares for its description, beside the list of fields. In the struct:
//
//   static constexpr CardKind kind{"apelink"};
//
// beside it, as overloads for the struct:
//
//   void validate(card);                     checks across fields; ranges have been checked before
//   CardTraits traits_of(card, host);          what the card can do
//   unique_ptr<CardSet> make_set(card, surroundings);   all cards of a machine
//
// validate throws std::invalid_argument naming the key, the value and what was expected. A line of
// nic/cards.txt registers the card: folder, namespace and line have one name, and the struct is Description.
#pragma once

#include <array>
#include <memory>
#include <string_view>

namespace apenet {

struct HostDescription;
struct CardTraits;
struct CardSurroundings;
class CardSet;

struct CardKind {
  std::string_view name;    // card.kind
  bool has_network = true;  // and so links and routers
  bool has_bus = true;
  // The layers of `apenet bench` whose library drives this card.
  std::array<std::string_view, 2> layers = {};
  std::string_view conduit = {};  // GASNet's own for this card
};

}  // namespace apenet
