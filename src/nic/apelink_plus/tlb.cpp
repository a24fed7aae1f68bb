#include "nic/apelink_plus/tlb.hpp"

#include <algorithm>

namespace apenet::apelink_plus {

bool Tlb::look_up(const Page& page) {
  if (entries_ == 0) return false;
  auto found = std::find(state_.pages.begin(), state_.pages.end(), page);
  const bool is_hit = found != state_.pages.end();
  if (!is_hit) {
    if (state_.pages.size() < entries_) state_.pages.push_back(page);
    found = state_.pages.end() - 1;
    *found = page;
  }
  std::rotate(state_.pages.begin(), found, found + 1);
  return is_hit;
}

}  // namespace apenet::apelink_plus
