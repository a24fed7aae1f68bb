#include "nic/apelink_plus/tlb.hpp"

#include <algorithm>

namespace apenet::apelink_plus {

bool Tlb::look_up(const Page& page) {
  if (entries_ == 0) return false;
  auto found = std::find(pages_.begin(), pages_.end(), page);
  const bool is_hit = found != pages_.end();
  if (!is_hit) {
    if (pages_.size() < entries_) pages_.push_back(page);
    found = pages_.end() - 1;
    *found = page;
  }
  std::rotate(pages_.begin(), found, found + 1);
  return is_hit;
}

}  // namespace apenet::apelink_plus
