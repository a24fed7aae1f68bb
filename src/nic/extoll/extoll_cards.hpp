// The interface of the EXTOLL card to the machine.
#pragma once

#include "nic/card_set.hpp"

namespace apenet {

void validate(const ExtollDescription& card, const HostDescription& host);
[[nodiscard]] CardFacts facts_of(const ExtollDescription& card, const HostDescription& host);
[[nodiscard]] std::unique_ptr<CardSet> make_set(const ExtollDescription& card,
                                                const CardSurroundings& surroundings);

}  // namespace apenet
