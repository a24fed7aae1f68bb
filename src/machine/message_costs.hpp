// Parameters of a machine for the message engines of its processes: costs of its software, limits of the
// card.
#pragma once

#include "machine/description.hpp"
#include "machine/machine.hpp"
#include "message/requests.hpp"

namespace apenet {

// MPI over the libfabric provider, or the card's own libraries.
enum class SoftwareLayer : std::uint8_t { mpi, card };

[[nodiscard]] message::SoftwareCosts message_costs(const MachineDescription& description,
                                                   SoftwareLayer layer = SoftwareLayer::mpi);
[[nodiscard]] message::CardLimits message_limits(const Machine& machine, std::uint8_t rail = 0,
                                                 SoftwareLayer layer = SoftwareLayer::mpi);

// The longest send that a library with these costs lets the CPU write to the card: up to here, in whole
// packets, it arrives no later than if the card read it from memory. copy_bytes_per_second: of the copy that
// the sender makes before the card reads; 0: none, the card reads the buffer itself. Where the library does
// not cut sends into packets, the card's limit.
[[nodiscard]] std::int64_t cpu_send_limit(const Machine& machine, const message::SoftwareCosts& costs,
                                          std::int64_t copy_bytes_per_second, std::uint8_t rail = 0);

}  // namespace apenet
