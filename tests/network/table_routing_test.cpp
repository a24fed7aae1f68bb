// Table files: rules apply as documented, errors name their cause, and no text breaks the parser.
#include "network/routing/table_routing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernel/random.hpp"
#include "network/routing/deadlock.hpp"
#include "network/topology/graph.hpp"
#include "support.hpp"

namespace apenet::testing {
namespace {

const std::vector<std::uint32_t> dims = {3, 2};

// X first, then Y, on a mesh of 3 x 2.
const std::string x_then_y =
    "(0,*)  (1-2,*)  +x\n"
    "(2,*)  (0-1,*)  -x\n"
    "(1,*)  (0,*)    -x\n"
    "(1,*)  (2,*)    +x\n"
    "(*,0)  (*,1)    +y\n"
    "*      *        -y\n";

TEST(Table, TheFirstMatchingRuleApplies) {
  const CubeShape shape(dims);
  const Topology mesh = make_mesh(shape);
  const auto table = read_table(x_then_y, mesh, dims);
  const DimensionOrderRouting reference(shape, false);
  for (RouterId router = 0; router < 6; ++router) {
    for (NodeId node = 0; node < 6; ++node)
      EXPECT_EQ(table->entry(router, node).port, reference.step(router, node).port)
          << router << " to " << node;
  }
  EXPECT_EQ(table->class_count(), 1U);
  EXPECT_EQ(find_dependency_cycle(mesh, *table), "");
}

TEST(Table, ReadsNamesNumbersRangesAndClasses) {
  const Topology row =
      make_topology(GraphDescription{"router a 2\nrouter b 2\nnode a:0\ncable a:1 b:0\nnode b:1\n", {}});
  const auto table = read_table("a 1 1 3  # class 3\nb 0-0 :0\n", row, {});
  EXPECT_EQ(table->entry(0, 1).port, 1);
  EXPECT_EQ(table->entry(0, 1).channel_class, 3);
  EXPECT_EQ(table->entry(1, 0).port, 0);
  EXPECT_EQ(table->entry(1, 1).port, 1);  // its own node
  EXPECT_EQ(table->class_count(), 4U);
}

struct BadTable {
  std::string text;
  const char* expected;
};

TEST(Table, ErrorsNameTheirCause) {
  const std::string all_but_last = x_then_y.substr(0, x_then_y.rfind("*      *"));
  const std::vector<BadTable> cases = {
      {all_but_last,
       "network.table_file = no route at (0,1) to node 0 at (0,0): expected a line for it: packets from node "
       "3 at (0,1)"},
      {all_but_last + "* * +y\n",
       "network.table_file = no route at (0,1) to node 0 at (0,0): expected a port with a cable: (0,1)+y "
       "leads to no"},
      {"(1,1) (0,0) +x\n(2,1) (0,0) -x\n" + x_then_y,
       "network.table_file = a loop on the way to node 0 at (0,0): expected routes that arrive, not "
       "(1,1)+x -> (2,1)-x -> (1,1)"},
      {x_then_y + "(0,0) 3 +x\n",
       "network.table_file line 7 = \"(0,0) 3 +x\": expected a rule with an effect"},
      {"(0,0) 3\n", "expected ROUTERS DESTINATIONS PORT [CLASS]"},
      {"(0,0) 3 +q\n", "expected a port, +x, -x, +y, -y, not \"+q\""},
      {"(0,0) 6 +x\n", "expected destinations, nodes 0 to 5"},
      {"(0,0) (0,2) +x\n", "expected destinations, nodes 0 to 5"},
      {"(0,0) (0,0,0) +x\n", "or by coordinates"},
      {"(0,2) 3 +x\n", "expected * or the name of a router, not \"(0,2)\" (did you mean (0,0)?)"},
      {"(0,0) 3 +x 16\n", "expected a class from 0 to 15"},
      {"(0,0) 3 +x x\n", "expected a class from 0 to 15"},
  };
  const Topology mesh = make_mesh(CubeShape(dims));
  for (const BadTable& bad : cases) {
    const std::string message = refusal([&] { (void)read_table(bad.text, mesh, dims); });
    EXPECT_NE(message.find(bad.expected), std::string::npos) << message;
  }
}

TEST(Table, TheCycleOfATableThatDeadlocksIsNamed) {
  const std::vector<std::uint32_t> ring = {5};
  const Topology torus = make_torus(CubeShape(ring));
  EXPECT_EQ(
      find_dependency_cycle(torus, *read_table("* * +x\n", torus, ring)),
      "(0)+x class 0 -> (1)+x class 0 -> (2)+x class 0 -> (3)+x class 0 -> (4)+x class 0 -> (0)+x class 0");
}

TEST(Table, AnyTextIsATableOrRefused) {
  const std::vector<std::string> words = {"*",   "(0,0)", "(*,1)", "+x",   "-y",    "0-5", "(0-1,*)", "99",
                                          "(,)", "()",    "(1",    "\xff", "local", "7",   "15",      "#"};
  const Topology mesh = make_mesh(CubeShape(dims));
  RandomStream random(18, 0);
  int accepted = 0;
  for (int run = 0; run < 4000; ++run) {
    std::string text = x_then_y;
    for (std::uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
      const std::size_t at = random.below(text.size() + 1);
      switch (random.below(3)) {
        case 0:
          text.insert(at, " " + words[random.below(words.size())] + " ");
          break;
        case 1:
          text.erase(at, random.below(10));
          break;
        default:
          text.insert(at, 1, static_cast<char>(random.below(256)));
          break;
      }
    }
    try {
      accepted += read_table(text, mesh, dims)->class_count() > 0 ? 1 : 0;
    } catch (const std::invalid_argument& error) {
      ASSERT_EQ(std::string(error.what()).find("network.table_file"), 0U) << error.what();
    }
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace apenet::testing
