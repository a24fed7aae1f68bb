#include "network/faults/fault_schedule.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "kernel/random.hpp"
#include "network/topology/crossbar.hpp"
#include "network/topology/cube.hpp"
#include "network/topology/fat_tree.hpp"

namespace apenet {
namespace {

std::string refusal_of(const std::string& text) {
  try {
    static_cast<void>(parse_fault(text));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

std::string refusal_of(const Topology& topology, const std::string& text) {
  try {
    const FaultSchedule schedule(topology, {text});
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Fault, IsParsedFromItsText) {
  const Fault fault = parse_fault("link  (0,0,0)+x down @10us up @2ms down @2.5ms up @1s");
  EXPECT_EQ(fault.kind, FaultKind::link);
  EXPECT_EQ(fault.name, "(0,0,0)+x");
  ASSERT_EQ(fault.changes.size(), 4U);
  const std::int64_t times_ps[] = {10'000'000, 2'000'000'000, 2'500'000'000, 1'000'000'000'000};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(fault.changes[i].time.ps(), times_ps[i]);
    EXPECT_EQ(fault.changes[i].is_up, i % 2 == 1);
  }
  EXPECT_EQ(parse_fault("node 7 down @0ns").changes[0].time, Time::zero());
  EXPECT_EQ(parse_fault("switch leaf3 down @7ps").kind, FaultKind::router);
  EXPECT_EQ(parse_fault("switch leaf3 down @0.001ns").changes[0].time.ps(), 1);
  EXPECT_EQ(parse_fault("node 1 down @1000000s").changes[0].time.ps(), 1'000'000'000'000'000'000);
}

TEST(Fault, RefusalQuotesTheTextAndNamesWhatWasExpected) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "expected link|node|switch NAME down @TIME"},
      {"lnk (0,0,0)+x down @1us", "not \"lnk\" (did you mean link?)"},
      {"link (0,0,0)+x", "expected link|node|switch NAME down @TIME"},
      {"link (0,0,0)+x down", "expected link|node|switch NAME down @TIME"},
      {"link (0,0,0)+x up @1us", "expected down where \"up\" stands"},
      {"link (0,0,0)+x down @1us down @2us", "expected up where \"down\" stands"},
      {"link (0,0,0)+x down @2us up @2us", "increasing times: @2us is not after @2us"},
      {"link (0,0,0)+x down 10us", "a time such as @10us"},
      {"link (0,0,0)+x down @10", "a time such as @10us"},
      {"link (0,0,0)+x down @-1us", "a time such as @10us"},
      {"link (0,0,0)+x down @1.us", "a time such as @10us"},
      {"link (0,0,0)+x down @1.5.2us", "a time such as @10us"},
      {"link (0,0,0)+x down @0.0001ns", "a time such as @10us"},
      {"link (0,0,0)+x down @1000001s", "a time such as @10us"},
      {"link (0,0,0)+x down @99999999999999999999s", "a time such as @10us"},
      {"link (0,0,0)+x down @10min", "a time such as @10us"},
  };
  for (const auto& [text, expected] : wrong) {
    const std::string refusal = refusal_of(text);
    EXPECT_NE(refusal.find("fault = \"" + std::string(text)), std::string::npos) << refusal;
    EXPECT_NE(refusal.find(expected), std::string::npos) << refusal;
  }
}

TEST(Fault, AnyTextIsAFaultOrRefused) {
  const std::vector<std::string> pieces = {"link", "node",    "switch", "down", "up",  "@10us", "@2ms",
                                           "@",    "(0,0)+x", "7",      " ",    "\t",  ".",     "@1.5ns",
                                           "@9s",  "\n",      "\xff",   "0",    "@0ps"};
  int accepted = 0;
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    RandomStream random(seed, 40);
    std::string text = seed % 2 == 0 ? "link (0,0)+x down @10us up @2ms" : "";
    for (std::uint64_t i = 1 + random.below(6); i > 0; --i) {
      const std::string& piece = pieces[random.below(pieces.size())];
      const std::size_t at = random.below(text.size() + 1);
      if (random.below(3) == 0 && !text.empty()) {
        text.erase(random.below(text.size()), 1 + random.below(3));
      } else if (random.below(2) == 0) {
        text += " " + piece;
      } else {
        text.insert(at, piece);
      }
    }
    try {
      const Fault fault = parse_fault(text);
      ++accepted;
      ASSERT_FALSE(fault.changes.empty()) << text;
      for (std::size_t i = 0; i < fault.changes.size(); ++i) {
        ASSERT_EQ(fault.changes[i].is_up, i % 2 == 1) << text;
        ASSERT_TRUE(i == 0 || fault.changes[i - 1].time < fault.changes[i].time) << text;
      }
    } catch (const std::invalid_argument& error) {
      ASSERT_EQ(std::string(error.what()).rfind("fault = \"", 0), 0U) << text;
    }
  }
  EXPECT_GT(accepted, 200);
  EXPECT_LT(accepted, 10'000);
}

TEST(FaultSchedule, AcceptsTheNamesOfTheMachine) {
  const Topology torus = make_torus(CubeShape({4, 2, 2}));
  EXPECT_EQ(refusal_of(torus, "link (0,0,0)+x down @1us"), "accepted");
  EXPECT_EQ(refusal_of(torus, "node (3,1,1) down @1us"), "accepted");
  EXPECT_EQ(refusal_of(torus, "node 15 down @1us"), "accepted");
  EXPECT_NE(refusal_of(torus, "link (0,0,0)x down @1us").find("did you mean (0,0,0)+x?"), std::string::npos);
  EXPECT_NE(refusal_of(torus, "link (4,0,0)+x down @1us").find("a link of this machine"), std::string::npos);
  EXPECT_NE(refusal_of(torus, "node 16 down @1us").find("a number below 16"), std::string::npos);
  EXPECT_NE(refusal_of(torus, "node (4,0,0) down @1us").find("a number below 16"), std::string::npos);
  EXPECT_NE(refusal_of(torus, "switch (9,9,9) down @1us").find("a switch of this machine"),
            std::string::npos);
  const Topology tree = make_fat_tree(FatTreeShape({{4, 2}, {2}, {1}}));
  EXPECT_EQ(refusal_of(tree, "node 7 down @1us"), "accepted");
  EXPECT_EQ(refusal_of(tree, "switch " + tree.router_name(0) + " down @1us"), "accepted");
  EXPECT_NE(refusal_of(tree, "node " + tree.router_name(0) + " down @1us").find("a number below 8"),
            std::string::npos);
  EXPECT_NE(refusal_of(make_topology(CrossbarDescription{4}), "link switch:0 down @1us").find("it has none"),
            std::string::npos);
}

// A cable fails in both directions. A node of a torus fails with its router; elsewhere only its card fails.
TEST(FaultSchedule, TakesDownWhatTheFaultAffects) {
  const Topology torus = make_torus(CubeShape({4, 4}));
  const FaultSchedule schedule(torus, {"link (0,0)+x down @1us up @3us", "node (1,0) down @2us up @4us"});
  Liveness liveness(torus);
  const PortRef out{0, 0};
  const PortRef back = torus.neighbour(out);
  ASSERT_EQ(schedule.changes().size(), 4U);
  schedule.apply(schedule.changes()[0], liveness);
  EXPECT_FALSE(liveness.is_alive(out));
  EXPECT_FALSE(liveness.is_alive(back));
  EXPECT_TRUE(liveness.is_alive({1, 0}));
  schedule.apply(schedule.changes()[1], liveness);
  EXPECT_FALSE(liveness.is_alive({1, 0}));
  EXPECT_FALSE(liveness.is_alive(torus.attachment(1)));
  EXPECT_EQ(liveness.find_islands(torus)[1], Liveness::no_island);
  schedule.apply(schedule.changes()[2], liveness);
  EXPECT_FALSE(liveness.is_alive(out)) << "the node at its other end is dead";
  schedule.apply(schedule.changes()[3], liveness);
  EXPECT_TRUE(liveness.is_alive(out));
  EXPECT_TRUE(liveness.is_all_alive());

  const Topology tree = make_fat_tree(FatTreeShape({{4, 2}, {2}, {1}}));
  const FaultSchedule of_tree(tree, {"node 5 down @1us"});
  Liveness of_nodes(tree);
  of_tree.apply(of_tree.changes()[0], of_nodes);
  const std::vector<std::uint32_t> islands = of_nodes.find_islands(tree);
  for (NodeId node = 0; node < 8; ++node) {
    EXPECT_EQ(islands[node], node == 5 ? Liveness::no_island : islands[0]) << node;
  }
}

TEST(FaultSchedule, IslandsAreTheNodesThatStillReachEachOther) {
  const Topology ring = make_torus(CubeShape({6}));
  const FaultSchedule schedule(ring, {"link (0)+x down @1us", "link (3)-x down @1us"});
  Liveness liveness(ring);
  schedule.apply(schedule.changes()[0], liveness);
  std::vector<std::uint32_t> islands = liveness.find_islands(ring);
  EXPECT_EQ(std::vector<std::uint32_t>(6, islands[0]), islands);
  schedule.apply(schedule.changes()[1], liveness);  // the cables 0-1 and 2-3
  islands = liveness.find_islands(ring);
  EXPECT_EQ(islands[1], islands[2]);
  EXPECT_NE(islands[0], islands[1]);
  EXPECT_EQ(islands[0], islands[3]);
  EXPECT_EQ(islands[0], islands[5]);
}

TEST(Fault, TimesAreShownInMicroseconds) {
  EXPECT_EQ(time_text(Time::from_ps(12'500'000)), "12.5 us");
  EXPECT_EQ(time_text(Time::from_ps(3'000'000'000)), "3000 us");
  EXPECT_EQ(time_text(Time::from_ps(1)), "0.000001 us");
  EXPECT_EQ(time_text(Time::zero()), "0 us");
}

}  // namespace
}  // namespace apenet
