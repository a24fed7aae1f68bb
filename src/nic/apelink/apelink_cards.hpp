// The interface of the APELink card to the machine.
#pragma once

#include "nic/card_set.hpp"

namespace apenet {

void validate(const ApelinkDescription& card, const HostDescription& host);
[[nodiscard]] CardFacts facts_of(const ApelinkDescription& card, const HostDescription& host);
[[nodiscard]] std::unique_ptr<CardSet> make_set(const ApelinkDescription& card,
                                                const CardSurroundings& surroundings);

}  // namespace apenet
