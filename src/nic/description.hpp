// The card of a machine as plain data. The type list registers the cards: what is not here does not exist,
// and what a card needs besides stands in its folder (nic/card_kind.hpp).
#pragma once

#include <variant>

#include "nic/apelink/description.hpp"
#include "nic/apelink_plus/description.hpp"
#include "nic/extoll/description.hpp"
#include "nic/hca/description.hpp"
#include "nic/ideal/description.hpp"
#include "nic/tnw/description.hpp"

namespace apenet {

using NicDescription = std::variant<IdealDescription,        //
                                    FabricDescription,       //
                                    ApelinkDescription,      //
                                    ApelinkPlusDescription,  //
                                    ExtollDescription,       //
                                    HcaDescription,          //
                                    TnwDescription>;

}  // namespace apenet
