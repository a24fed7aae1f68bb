#include "runtime/scheduler/rank_names.hpp"

#include <cstddef>

namespace apenet {

std::string name_ranks(const std::vector<std::uint32_t>& ranks) {
  constexpr std::size_t most_ranges = 32;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  std::size_t ranges = 0;
  for (std::size_t begin = 0, end = 0; begin < ranks.size(); begin = end) {
    if (ranges++ == most_ranges) return text + " and " + std::to_string(ranks.size() - begin) + " more";
    end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (begin > 0) text += ", ";
    text += std::to_string(ranks[begin]);
    if (end - begin > 1) text += (end - begin > 2 ? "-" : ", ") + std::to_string(ranks[end - 1]);
  }
  return text;
}

}  // namespace apenet
