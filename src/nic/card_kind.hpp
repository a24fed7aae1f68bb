// What a card's folder declares for its description, beside the list of its fields:
//
//   static constexpr CardKind kind{"apelink"};                                               in the struct
//   void validate(const ApelinkDescription&, const HostDescription&);                        what no range
//   says CardFacts facts_of(const ApelinkDescription&, const HostDescription&);                   what it can
//   do std::unique_ptr<CardSet> make_set(const ApelinkDescription&, const CardSurroundings&);   all of a
//   machine
//
// validate throws std::invalid_argument naming the key, the value and what was expected; ranges have been
// checked before. nic/description.hpp registers the struct.
#pragma once

#include <memory>
#include <string_view>

namespace apenet {

struct HostDescription;
struct CardFacts;
struct CardSurroundings;
class CardSet;

struct CardKind {
  std::string_view name;    // card.kind
  bool has_network = true;  // and so links and routers
  bool has_bus = true;
};

}  // namespace apenet
