// How ranks are named in messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace apenet {

// "rank 3", "ranks 0-2, 5"; of many that do not follow each other, the first. Ascending, at least one.
[[nodiscard]] std::string name_ranks(const std::vector<std::uint32_t>& ranks);

}  // namespace apenet
