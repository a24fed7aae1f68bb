// What a machine tells the message engine of its processes: costs of software, limits of the card.
#pragma once

#include "machine/description.hpp"
#include "message/port.hpp"
#include "nic/nic.hpp"

namespace apenet {

[[nodiscard]] message::SoftwareCosts message_costs(const MachineDescription& description);
// Whether the card translates the addresses of puts and gets: then it matters where buffers lie.
[[nodiscard]] bool translates_addresses(const MachineDescription& description);
[[nodiscard]] message::CardLimits message_limits(const NicCapabilities& card);

}  // namespace apenet
