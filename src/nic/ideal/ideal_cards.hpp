// The interface of the ideal card to the machine.
#pragma once

#include "nic/card_set.hpp"

namespace apenet {

void validate(const IdealDescription& card, const HostDescription& host);
[[nodiscard]] CardFacts facts_of(const IdealDescription& card, const HostDescription& host);
[[nodiscard]] std::unique_ptr<CardSet> make_set(const IdealDescription& card,
                                                const CardSurroundings& surroundings);

}  // namespace apenet
