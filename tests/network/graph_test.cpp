// Graph files are wired as written, errors name the line, and no text breaks the parser.
#include "network/topology/graph.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernel/random.hpp"
#include "support.hpp"

namespace apenet::testing {
namespace {

const std::string small =
    "# three switches in a row\n"
    "router left 3\n"
    "router mid 4\n"
    "router right 2\n"
    "node left:0-1   # nodes 0 and 1\n"
    "cable left:2 mid:0\n"
    "cable mid:1 right:0 fast\n"
    "node right:1\n"
    "node mid:2\n"
    "unused mid:3\n";

TEST(Graph, IsWiredAsWritten) {
  const Topology topology = make_topology(GraphDescription{small, {"slow", "fast"}});
  EXPECT_EQ(topology.router_count(), 3U);
  EXPECT_EQ(topology.endpoint_count(), 4U);
  EXPECT_EQ(topology.attachment(1), (PortRef{0, 1}));
  EXPECT_EQ(topology.attachment(2), (PortRef{2, 1}));
  EXPECT_EQ(topology.attachment(3), (PortRef{1, 2}));
  EXPECT_EQ(topology.neighbour({0, 2}), (PortRef{1, 0}));
  EXPECT_EQ(topology.neighbour({2, 0}), (PortRef{1, 1}));
  EXPECT_EQ(topology.link_class({0, 2}), 0U);
  EXPECT_EQ(topology.link_class({1, 1}), 2U);
  EXPECT_EQ(topology.link_name({1, 1}), "mid:1");
}

struct BadGraph {
  const char* line;      // replaces "unused mid:3"
  const char* expected;  // part of the message
};

TEST(Graph, ErrorsNameLineAndExpectation) {
  const std::vector<BadGraph> cases = {
      {"",
       "network.graph_file = a dangling port mid:3: expected a node or cable at it, or the line: unused "
       "mid:3"},
      {"cable mid:3", "network.graph_file line 10 = \"cable mid:3\": expected a second end"},
      {"cable mid:3 left:2", "expected a free port: line 6 uses port 2 of left"},
      {"cable mid:3 mid:3", "expected two different routers"},
      {"cable mid:3 rigth:1", "expected a router declared above, not \"rigth\" (did you mean right?)"},
      {"cable mid:3 right:2", "expected a port of right below 2: line 4 declares no more"},
      {"router new 1\ncable mid:3 new:0 fat", "one of slow, fast (did you mean fast?)"},
      {"cable mid:3 right:1 fast fast", "expected cable ROUTER:PORT ROUTER:PORT [LINK]"},
      {"cable mid:3 right:0-1", "expected a single port, not a range"},
      {"cable mid:3 right", "expected ROUTER:PORT with a port's number, not \"right\""},
      {"node mid:x", "expected ROUTER:PORT with a port's number"},
      {"node mid:3-2", "expected ROUTER:PORT with a port's number"},
      {"node mid:3 mid:4", "expected node ROUTER:PORT"},
      {"nodes mid:3", "expected router, node, cable or unused (did you mean node?)"},
      {"router mid 3", "expected a name of its own: line 3 declares this router"},
      {"router new 0", "expected a number of ports from 1 to 4096"},
      {"router new 99999999999", "expected a number of ports from 1 to 4096"},
      {"router new", "expected router NAME PORTS"},
      {"router n:w 3", "expected a name of up to 64 letters"},
      {"unused mid:3\nrouter alone 1\nnode alone:0",
       "network.graph_file = a graph that is not connected: expected a path between every two routers; there "
       "is none "
       "from left to alone"},
  };
  for (const BadGraph& bad : cases) {
    std::string text = small;
    text.replace(text.find("unused mid:3"), std::string("unused mid:3").size(), bad.line);
    const std::string message = refusal([&] {
      (void)make_topology(GraphDescription{text, {"slow", "fast"}});
    });
    EXPECT_NE(message.find(bad.expected), std::string::npos) << message;
    EXPECT_EQ(message.find("network.graph_file"), 0U) << message;
  }
  EXPECT_NE(refusal([] { (void)make_topology(GraphDescription{}); }).find("a graph without nodes"),
            std::string::npos);
  EXPECT_NE(refusal([] {
              (void)make_topology(GraphDescription{"router a 1\nrouter b 1\ncable a:0 b:0 x\n", {}});
            }).find("it has none"),
            std::string::npos);
}

// Text mutated by bytes, words and lines yields a topology or a std::invalid_argument that names the file.
TEST(Graph, AnyTextIsAGraphOrRefused) {
  const std::vector<std::string> words = {"router", "node", "cable", "unused",     "left", "mid:3",
                                          ":",      "mid:", "0-9",   "4294967296", "-1",   "\xff\xfe",
                                          "#",      "4096", "fast",  "left:0-1"};
  RandomStream random(17, 0);
  int accepted = 0;
  for (int run = 0; run < 4000; ++run) {
    std::string text = small;
    for (std::uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
      const std::size_t at = random.below(text.size() + 1);
      switch (random.below(4)) {
        case 0:
          text.insert(at, " " + words[random.below(words.size())] + " ");
          break;
        case 1:
          text.erase(at, random.below(12));
          break;
        case 2:
          text.insert(at, 1, static_cast<char>(random.below(256)));
          break;
        default:
          text.insert(at, text.substr(random.below(text.size() + 1), random.below(30)));
          break;
      }
    }
    try {
      accepted += make_topology(GraphDescription{text, {"fast"}}).endpoint_count() > 0 ? 1 : 0;
    } catch (const std::invalid_argument& error) {
      ASSERT_EQ(std::string(error.what()).find("network.graph_file"), 0U) << error.what();
    }
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace apenet::testing
