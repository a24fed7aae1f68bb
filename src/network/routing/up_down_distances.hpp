// UpDownDistances: the lengths of the paths of up*/down* to one router.
#pragma once

#include <cstdint>
#include <vector>

#include "network/routing/up_down_links.hpp"

namespace apenet {

// Lengths, in links, of the paths to one router, the target. A path from a router above the target only goes
// down. Any other goes up to the first router above the target that makes it shortest. Measures only as far
// as asked, so that the cost depends on what lies above the two routers, not on the size of the network.
class UpDownDistances {
 public:
  struct Distance {
    std::uint32_t links : 31;
    std::uint32_t goes_down : 1;  // from here on the path only goes down

    [[nodiscard]] bool is_known() const { return links != unknown; }
    [[nodiscard]] bool is_endless() const { return links == endless; }  // no path up and then down
  };

  explicit UpDownDistances(const UpDownLinks& links)
      : links_(links), from_(links.router_count(), not_yet), waiting_(links.router_count() / bits + 1) {}

  // All routers are given by their ranks.
  void aim_at(std::uint32_t target);
  // Measures the paths from that router, and from those on its ways up.
  [[nodiscard]] Distance measure(std::uint32_t router);
  // The measured distance; of a router that was not measured, one that fits no path.
  [[nodiscard]] Distance of(std::uint32_t router) const { return from_[router]; }

 private:
  static constexpr std::uint32_t endless = (1U << 31U) - 1;
  static constexpr std::uint32_t unknown = endless - 1;
  static constexpr Distance not_yet{unknown, 0};
  static constexpr std::uint32_t bits = 64;

  void set(std::uint32_t router, Distance distance) {
    from_[router] = distance;
    measured_.push_back(router);
  }
  void await(std::uint32_t router) { waiting_[router / bits] |= std::uint64_t{1} << router % bits; }
  template <typename Visit>
  void visit_upwards(std::uint32_t start, Visit visit);

  const UpDownLinks& links_;
  std::vector<Distance> from_;           // per router
  std::vector<std::uint32_t> measured_;  // the target first
  std::vector<std::uint64_t> waiting_;   // a bit per router: it is to be visited
  std::vector<std::uint32_t> visited_;
};

}  // namespace apenet
