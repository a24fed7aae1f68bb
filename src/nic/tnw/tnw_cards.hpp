// The interface of the TNW card to the machine.
#pragma once

#include "nic/card_set.hpp"

namespace apenet {

void validate(const TnwDescription& card, const HostDescription& host);
[[nodiscard]] CardFacts facts_of(const TnwDescription& card, const HostDescription& host);
[[nodiscard]] std::unique_ptr<CardSet> make_set(const TnwDescription& card,
                                                const CardSurroundings& surroundings);

}  // namespace apenet
