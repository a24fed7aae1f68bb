// Formats lists of ranks for messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace apenet {

// Returns for example "rank 3" or "ranks 0-2, 5"; long lists are abbreviated. Requires an ascending,
// non-empty list.
[[nodiscard]] std::string name_ranks(const std::vector<std::uint32_t>& ranks);

}  // namespace apenet
