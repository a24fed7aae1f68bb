// What a machine needs of the ideal card to be wired with it.
#pragma once

#include "nic/card_set.hpp"

namespace apenet {

void validate(const IdealDescription& card, const HostDescription& host);
[[nodiscard]] CardFacts facts_of(const IdealDescription& card, const HostDescription& host);
[[nodiscard]] std::unique_ptr<CardSet> make_set(const IdealDescription& card,
                                                const CardSurroundings& surroundings);

}  // namespace apenet
