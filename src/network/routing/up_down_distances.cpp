#include "network/routing/up_down_distances.hpp"

#include <algorithm>
#include <bit>

namespace apenet {

// Visits that router and all that await() adds during the visits, from the highest rank to the lowest. So it
// visits a router after all from which links lead up to it.
template <typename Visit>
void UpDownDistances::visit_upwards(std::uint32_t start, Visit visit) {
  await(start);
  for (std::uint32_t word = start / bits + 1; word-- > 0;) {
    while (waiting_[word] != 0) {
      const auto bit = static_cast<std::uint32_t>(std::bit_width(waiting_[word]) - 1);
      waiting_[word] ^= std::uint64_t{1} << bit;
      visit(word * bits + bit);
    }
  }
}

// Measures all routers that reach the target only going down: those on its ways up.
void UpDownDistances::aim_at(std::uint32_t target) {
  if (!measured_.empty() && measured_.front() == target) return;
  for (const std::uint32_t router : measured_) from_[router] = not_yet;
  measured_.clear();
  set(target, {0, 1});
  visit_upwards(target, [this](std::uint32_t router) {
    const std::uint32_t links = from_[router].links + 1U;
    for (const std::uint32_t above : links_.above(router)) {
      if (!from_[above].is_known()) {
        set(above, {links, 1});
        await(above);
      } else if (links < from_[above].links) {
        from_[above].links = links;
      }
    }
  });
}

UpDownDistances::Distance UpDownDistances::measure(std::uint32_t router) {
  if (from_[router].is_known()) return from_[router];
  visited_.clear();
  visit_upwards(router, [this](std::uint32_t next) {
    visited_.push_back(next);
    for (const std::uint32_t above : links_.above(next)) {
      if (!from_[above].is_known()) await(above);
    }
  });
  for (auto next = visited_.rbegin(); next != visited_.rend(); ++next) {
    std::uint32_t shortest = endless;
    for (const std::uint32_t above : links_.above(*next))
      shortest = std::min<std::uint32_t>(shortest, from_[above].links);
    set(*next, {shortest == endless ? endless : shortest + 1, 0});
  }
  return from_[router];
}

}  // namespace apenet
