#include "nic/card_set.hpp"

#include "nic/apelink/apelink_cards.hpp"
#include "nic/apelink_plus/apelink_plus_cards.hpp"
#include "nic/extoll/extoll_cards.hpp"
#include "nic/hca/hca_cards.hpp"
#include "nic/ideal/ideal_cards.hpp"
#include "nic/tnw/tnw_cards.hpp"

namespace apenet {

// Each card provides its own overloads of these three functions, in its folder.

void validate_card(const NicDescription& card, const HostDescription& host) {
  std::visit([&](const auto& description) { validate(description, host); }, card);
}

CardFacts card_facts(const NicDescription& card, const HostDescription& host) {
  return std::visit([&](const auto& description) { return facts_of(description, host); }, card);
}

std::unique_ptr<CardSet> make_cards(const NicDescription& card, const CardSurroundings& surroundings) {
  return std::visit([&](const auto& description) { return make_set(description, surroundings); }, card);
}

}  // namespace apenet
