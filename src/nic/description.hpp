// The card of a machine as plain data: one alternative a card.
#pragma once

#include <variant>

#include "nic/apelink/description.hpp"
#include "nic/apelink_plus/description.hpp"
#include "nic/extoll/description.hpp"
#include "nic/hca/description.hpp"
#include "nic/ideal/description.hpp"
#include "nic/tnw/description.hpp"

namespace apenet {

using NicDescription = std::variant<IdealDescription, ApelinkDescription, ApelinkPlusDescription,
                                    ExtollDescription, HcaDescription, TnwDescription>;

}  // namespace apenet
