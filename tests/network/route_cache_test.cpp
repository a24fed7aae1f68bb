// RouteCache returns what was set last, or nothing; with a place for every route it forgets none.
#include "network/routing/route_cache.hpp"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "kernel/random.hpp"
#include "network/topology/cube.hpp"

namespace apenet::testing {
namespace {

TEST(RouteCache, NeverTakesOneRouteForAnother) {
  const Topology topology = make_torus(CubeShape({7, 5, 3}));
  const std::uint32_t nodes = topology.endpoint_count();
  for (const std::uint64_t max_routes : {1U, 100U, 8192U, 16384U}) {
    RouteCache cache(topology, max_routes);
    std::map<std::pair<RouterId, NodeId>, std::uint32_t> set;
    RandomStream random(max_routes, 0);
    std::size_t forgotten = 0;
    for (int i = 0; i < 20'000; ++i) {
      const auto router = static_cast<RouterId>(random.below(nodes));
      const auto node = static_cast<NodeId>(random.below(nodes));
      const std::uint32_t found = cache.find(router, node);
      const auto expected = set.find({router, node});
      if (found != RouteCache::none) {
        ASSERT_TRUE(expected != set.end());
        ASSERT_EQ(found, expected->second);
      } else if (expected != set.end()) {
        ++forgotten;
      }
      const auto port = static_cast<std::uint32_t>(random.below(topology.ports_per_router()));
      cache.set(router, node, port);
      set[{router, node}] = port;
      ASSERT_EQ(cache.find(router, node), port);
    }
    const bool has_all_places = max_routes >= std::uint64_t{nodes} * nodes;
    EXPECT_EQ(forgotten == 0, has_all_places) << max_routes;
  }
}

}  // namespace
}  // namespace apenet::testing
