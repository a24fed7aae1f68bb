// The interface of the host channel adapter to the machine.
#pragma once

#include "nic/card_set.hpp"

namespace apenet {

void validate(const HcaDescription& card, const HostDescription& host);
[[nodiscard]] CardFacts facts_of(const HcaDescription& card, const HostDescription& host);
[[nodiscard]] std::unique_ptr<CardSet> make_set(const HcaDescription& card,
                                                const CardSurroundings& surroundings);

}  // namespace apenet
