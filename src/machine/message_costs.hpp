// What a machine tells the message engines of its processes: costs of MPI's software, limits of the card.
#pragma once

#include "machine/description.hpp"
#include "message/requests.hpp"
#include "nic/nic.hpp"

namespace apenet {

[[nodiscard]] message::SoftwareCosts message_costs(const MachineDescription& description);
[[nodiscard]] message::CardLimits message_limits(const NicCapabilities& card);

}  // namespace apenet
