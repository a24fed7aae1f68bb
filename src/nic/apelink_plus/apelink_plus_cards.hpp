// The interface of the APEnet+ card to the machine.
#pragma once

#include "nic/card_set.hpp"

namespace apenet {

void validate(const ApelinkPlusDescription& card, const HostDescription& host);
[[nodiscard]] CardFacts facts_of(const ApelinkPlusDescription& card, const HostDescription& host);
[[nodiscard]] std::unique_ptr<CardSet> make_set(const ApelinkPlusDescription& card,
                                                const CardSurroundings& surroundings);

}  // namespace apenet
