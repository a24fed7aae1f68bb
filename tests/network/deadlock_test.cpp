// The deadlock check finds the existing cycles and no others.
#include "network/routing/deadlock.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "network/routing/adaptive_routing.hpp"
#include "network/routing/routing.hpp"
#include "network/routing/routing_factor.hpp"
#include "network/topology/cube.hpp"

namespace apenet {
namespace {

// Makes a routing from any function. Checked as a whole network, without factors.
class FunctionRouting final : public Routing {
 public:
  using Function = std::function<void(const RouteQuery&, RouteSteps&)>;
  FunctionRouting(std::uint32_t class_count, bool is_memoryless, Function function)
      : class_count_(class_count), is_memoryless_(is_memoryless), function_(std::move(function)) {}
  [[nodiscard]] std::uint32_t class_count() const override { return class_count_; }
  void route(const RouteQuery& query, RouteSteps& steps) const override { function_(query, steps); }
  [[nodiscard]] bool keeps_order() const override { return false; }
  [[nodiscard]] bool is_memoryless() const override { return is_memoryless_; }

 private:
  std::uint32_t class_count_;
  bool is_memoryless_;
  Function function_;
};

// Dimension order with each step modified by `change`.
FunctionRouting changed(const CubeShape& shape, std::uint32_t class_count, bool is_memoryless,
                        const std::function<RouteStep(const RouteQuery&, RouteStep)>& change) {
  return {class_count, is_memoryless,
          [routing = DimensionOrderRouting(shape, true), change](const RouteQuery& query, RouteSteps& steps) {
            steps.set_only(change(query, routing.step(query.router, query.destination)));
          }};
}

FunctionRouting without_dateline(const CubeShape& shape) {
  return changed(shape, 1, true, [](const RouteQuery&, RouteStep step) { return RouteStep{step.port, 0}; });
}

TEST(DeadlockCheck, NamesTheCycleOfATorusWithoutDatelines) {
  const CubeShape shape({1, 5});
  EXPECT_EQ(find_dependency_cycle(make_torus(shape), without_dateline(shape)),
            "(0,0)+y class 0 -> (0,1)+y class 0 -> (0,2)+y class 0 -> (0,3)+y class 0 -> (0,4)+y class 0 -> "
            "(0,0)+y class 0");
}

TEST(DeadlockCheck, RingsOfThreeAndFourNeedNoDateline) {
  const CubeShape shape({3, 4});  // ring of four: by the rule for ties, two-hop paths do not overlap
  EXPECT_EQ(find_dependency_cycle(make_torus(shape), without_dateline(shape)), "");
}

// Chooses the class by whether the dateline has been crossed (0 before, 1 after). Depends on the class in
// which the packet arrived.
RouteStep dateline_by_memory(const CubeShape& shape, const RouteQuery& query, RouteStep step,
                             bool crosses_upwards) {
  if (step.port == shape.local_port()) return step;
  const std::uint32_t position = shape.coordinates(query.router)[step.port / 2];
  const std::uint32_t edge = step.port % 2 == 0 ? shape.dims()[step.port / 2] - 1 : 0;
  const bool is_new = query.is_injected || query.input_port / 2 != step.port / 2;
  const std::uint32_t before = is_new ? 0 : query.input_class;
  if (position != edge) return {step.port, before};
  return {step.port, crosses_upwards ? 1U : 0U};
}

TEST(DeadlockCheck, FollowsTheInputClass) {
  const CubeShape shape({5, 6});
  const auto routing = [&](bool crosses_upwards) {
    return changed(shape, 2, false, [&, crosses_upwards](const RouteQuery& query, RouteStep step) {
      return dateline_by_memory(shape, query, step, crosses_upwards);
    });
  };
  EXPECT_EQ(find_dependency_cycle(make_torus(shape), routing(true)), "");
  EXPECT_NE(find_dependency_cycle(make_torus(shape), routing(false)), "");
}

TEST(DeadlockCheck, CountsEveryStepThatCanBeDrawn) {
  const CubeShape shape({5});
  // Both directions of a ring of five are allowed; the long way has no dateline.
  const auto routing = [&](bool goes_both_ways) {
    return FunctionRouting(2, true,
                           [&shape, goes_both_ways, minimal = DimensionOrderRouting(shape, true)](
                               const RouteQuery& query, RouteSteps& steps) {
                             const RouteStep step = minimal.step(query.router, query.destination);
                             steps.set_only(step);
                             if (step.port != shape.local_port() && goes_both_ways && query.router == 0) {
                               steps.clear(RouteChoice::random);
                               steps.add(step);
                               steps.add({step.port ^ 1U, 1});
                             }
                           });
  };
  EXPECT_EQ(find_dependency_cycle(make_torus(shape), routing(false)), "");
  EXPECT_NE(find_dependency_cycle(make_torus(shape), routing(true)), "");
}

// Any direction or dimension in class 2, with dimension order as escape, with or without its datelines.
FunctionRouting adaptive(const CubeShape& shape, bool has_dateline) {
  return {3, true,
          [&shape, has_dateline, escape = DimensionOrderRouting(shape, true)](const RouteQuery& query,
                                                                              RouteSteps& steps) {
            const RouteStep last = escape.step(query.router, query.destination);
            if (last.port == shape.local_port()) return steps.set_only(last);
            steps.clear(RouteChoice::adaptive);
            const std::vector<std::uint32_t> here = shape.coordinates(query.router);
            const std::vector<std::uint32_t> there = shape.coordinates(query.destination);
            for (std::uint32_t d = 0; d < here.size(); ++d) {
              const std::uint32_t size = shape.dims()[d];
              const std::uint32_t ahead = (there[d] + size - here[d]) % size;
              if (ahead != 0 && 2 * ahead <= size) steps.add({CubeShape::plus_port(d), 2});
              if (ahead != 0 && 2 * ahead >= size) steps.add({CubeShape::minus_port(d), 2});
            }
            steps.add({last.port, has_dateline ? last.channel_class : 0});
          }};
}

TEST(DeadlockCheck, AdaptiveRoutingNeedsAnEscapeWithoutCycle) {
  for (const std::vector<std::uint32_t>& dims :
       {std::vector<std::uint32_t>{5}, {4, 4}, {5, 6}, {2, 2, 2}, {4, 3, 4}, {8, 2}}) {
    const CubeShape shape(dims);
    EXPECT_EQ(find_dependency_cycle(make_torus(shape), adaptive(shape, true)), "")
        << ::testing::PrintToString(dims);
  }
  const CubeShape shape({5, 6});
  const std::string cycle = find_dependency_cycle(make_torus(shape), adaptive(shape, false));
  EXPECT_NE(cycle.find("class 0 -> "), std::string::npos) << cycle;
  EXPECT_EQ(cycle.find("class 2"), std::string::npos) << cycle;
}

// A ring of four. For three links ahead, the packet takes + in class 0, + in class 2, + in class 0; or,
// without class 2, goes back in classes 1 and 3. No escape (0, 1, 3) is followed directly by one that leads
// back to it, but across class 2, class 0 waits for class 0 two links ahead.
TEST(DeadlockCheck, FindsDependenciesAcrossAdaptiveChannels) {
  const CubeShape shape({4});
  const FunctionRouting routing(4, false, [](const RouteQuery& query, RouteSteps& steps) {
    constexpr std::uint32_t plus = CubeShape::plus_port(0);
    constexpr std::uint32_t minus = CubeShape::minus_port(0);
    const std::uint32_t ahead = (query.destination + 4 - query.router) % 4;
    if (ahead == 0) return steps.set_only({2, 0});
    if (query.is_injected) return steps.set_only(ahead == 2 ? RouteStep{minus, 1} : RouteStep{plus, 0});
    if (query.input_class == 1) return steps.set_only({minus, 3});
    if (query.input_class == 2) return steps.set_only({plus, 0});
    steps.clear(RouteChoice::adaptive);
    steps.add({plus, 2});
    steps.add({minus, 1});
  });
  EXPECT_EQ(find_dependency_cycle(make_torus(shape), routing),
            "(0)+x class 0 -> (2)+x class 0 -> (0)+x class 0");
}

// Tests the proof at DimensionOrderRouting::factors by example: checking the factors and checking the whole
// give the same result.
TEST(DeadlockCheck, FactorsAndTheWholeAgree) {
  for (const std::vector<std::uint32_t>& dims :
       {std::vector<std::uint32_t>{5, 4}, {2, 6, 3}, {4, 2, 2}, {6, 1, 5}}) {
    const CubeShape shape(dims);
    EXPECT_FALSE(DimensionOrderRouting(shape, true).factors().empty());
    const auto whole = [&](bool is_memoryless) {
      return changed(shape, 2, is_memoryless, [](const RouteQuery&, RouteStep step) { return step; });
    };
    EXPECT_EQ(find_dependency_cycle(make_torus(shape), whole(true)), "");
    EXPECT_EQ(find_dependency_cycle(make_torus(shape), whole(false)), "");
    EXPECT_EQ(find_dependency_cycle(make_torus(shape), DimensionOrderRouting(shape, true)), "");
  }
}

TEST(DeadlockCheck, MinimalAdaptiveFactorsAndTheWholeAgree) {
  for (const bool is_torus : {true, false}) {
    for (const std::vector<std::uint32_t>& dims :
         {std::vector<std::uint32_t>{5, 4}, {2, 4, 3}, {6}, {4, 4, 2}}) {
      const CubeShape shape(dims);
      const Topology topology = is_torus ? make_torus(shape) : make_mesh(shape);
      const MinimalAdaptiveRouting routing(shape, is_torus);
      const FunctionRouting whole(
          routing.class_count(), true,
          [&](const RouteQuery& query, RouteSteps& steps) { routing.route(query, steps); });
      EXPECT_EQ(find_dependency_cycle(topology, routing), "");
      EXPECT_EQ(find_dependency_cycle(topology, whole), "");
    }
  }
}

TEST(DeadlockCheck, LargeCubesAreCheckedQuickly) {
  const CubeShape shape({48, 48, 48});
  const Topology topology = make_torus(shape);
  EXPECT_EQ(find_dependency_cycle(topology, DimensionOrderRouting(shape, true)), "");
  EXPECT_EQ(find_dependency_cycle(topology, MinimalAdaptiveRouting(shape, true)), "");
}

TEST(DrawStep, IsAFunctionOfThePacketAndIndependentPerDimension) {
  std::vector<int> uses(3);
  std::vector<int> turns(4);
  for (std::uint32_t i = 0; i < 3000; ++i) {
    Packet packet;
    packet.source = i % 7;
    packet.message = i;
    packet.channel = 1;
    const std::uint32_t draws = draws_of(5, packet);
    packet.hops = 9;
    EXPECT_EQ(draws_of(5, packet), draws);
    const std::uint32_t drawn = draw_step(3, draws, 0);
    ASSERT_LT(drawn, 3U);
    ++uses[drawn];
    ++turns[2 * draw_step(2, draws, 0) + draw_step(2, draws, 2)];
  }
  for (const int use : uses) EXPECT_NEAR(use, 1000, 100);
  for (const int use : turns) EXPECT_NEAR(use, 750, 100);
}

}  // namespace
}  // namespace apenet
