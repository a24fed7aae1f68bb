#include "network/topology/graph.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "network/topology/text_file.hpp"

namespace apenet {

namespace {

class GraphReader {
 public:
  GraphReader(std::string_view text, const std::vector<std::string>& link_names)
      : file_("network.graph_file", text), link_names_(link_names) {}

  Topology read() {
    for (const TextLines::Line& line : file_.lines()) {
      const std::string& statement = line.words[0];
      if (statement == "router") {
        read_router(line);
      } else if (statement == "node") {
        read_node(line);
      } else if (statement == "cable") {
        read_cable(line);
      } else if (statement == "unused") {
        read_unused(line);
      } else {
        file_.refuse(line, "router, node, cable or unused" +
                               nearest_name(statement, {"router", "node", "cable", "unused"}));
      }
    }
    if (nodes_.empty()) file_.refuse("a graph without nodes", "at least one line: node ROUTER:PORT");
    require_all_used();
    Topology topology = wire();
    require_connected(topology);
    return topology;
  }

 private:
  static constexpr std::uint32_t max_routers = 1U << 20U;
  static constexpr std::uint32_t max_ports = 4096;
  static constexpr std::uint64_t max_table = 1U << 26U;  // limit of routers times ports of the largest router

  struct Router {
    std::string name;
    std::vector<std::uint32_t> used_in;  // per port: the line that uses it, or 0
    std::uint32_t line = 0;
  };
  struct Cable {
    PortRef one;
    PortRef other;
    std::uint32_t link_class;
  };
  struct Ports {
    RouterId router;
    NumberRange range;
  };
  using Line = TextLines::Line;

  void read_router(const Line& line) {
    if (line.words.size() != 3) file_.refuse(line, "router NAME PORTS");
    const std::string& name = line.words[1];
    const auto is_allowed = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             std::string_view("(),._+-").find(c) != std::string_view::npos;
    };
    constexpr std::size_t max_name = 64;
    if (name.size() > max_name || !std::all_of(name.begin(), name.end(), is_allowed))
      file_.refuse(line, "a name of up to 64 letters, digits or ( ) , . _ + -");
    const std::optional<std::uint32_t> ports = parse_number(line.words[2]);
    if (!ports || *ports < 1 || *ports > max_ports)
      file_.refuse(line, "a number of ports from 1 to " + std::to_string(max_ports));
    const auto [known, is_new] = numbers_.emplace(name, static_cast<RouterId>(routers_.size()));
    if (!is_new) {
      file_.refuse(line, "a name of its own: line " + std::to_string(routers_[known->second].line) +
                             " declares this router");
    }
    most_ports_ = std::max(most_ports_, *ports);
    routers_.push_back({name, std::vector<std::uint32_t>(*ports), line.number});
    if (routers_.size() > max_routers || routers_.size() * std::uint64_t{most_ports_} > max_table) {
      file_.refuse(line, "at most " + std::to_string(max_routers) + " routers and " +
                             std::to_string(max_table) + " of routers times ports of the largest");
    }
  }

  void read_node(const Line& line) {
    if (line.words.size() != 2) file_.refuse(line, "node ROUTER:PORT");
    const Ports ports = read_ports(line, line.words[1]);
    for (std::uint32_t port = ports.range.first; port <= ports.range.last; ++port) {
      use(line, {ports.router, port});
      nodes_.push_back({ports.router, port});
    }
  }

  void read_unused(const Line& line) {
    if (line.words.size() != 2) file_.refuse(line, "unused ROUTER:PORT");
    const Ports ports = read_ports(line, line.words[1]);
    for (std::uint32_t port = ports.range.first; port <= ports.range.last; ++port)
      use(line, {ports.router, port});
  }

  void read_cable(const Line& line) {
    if (line.words.size() == 2) file_.refuse(line, "a second end: cable ROUTER:PORT ROUTER:PORT [LINK]");
    if (line.words.size() != 3 && line.words.size() != 4)
      file_.refuse(line, "cable ROUTER:PORT ROUTER:PORT [LINK]");
    const PortRef one = read_port(line, line.words[1]);
    const PortRef other = read_port(line, line.words[2]);
    if (one.router == other.router)
      file_.refuse(line, "two different routers: no packet can use a cable from a router to itself");
    use(line, one);
    use(line, other);
    cables_.push_back({one, other, line.words.size() == 4 ? read_link(line, line.words[3]) : 0});
  }

  [[nodiscard]] std::uint32_t read_link(const Line& line, const std::string& name) const {
    const auto found = std::find(link_names_.begin(), link_names_.end(), name);
    if (found == link_names_.end()) {
      std::string known;
      for (const std::string& link : link_names_) known += (known.empty() ? "" : ", ") + link;
      file_.refuse(line, "a link of the machine file, [network.links.NAME]: " +
                             (known.empty() ? std::string("it has none") : "one of " + known) +
                             nearest_name(name, link_names_));
    }
    return 1 + static_cast<std::uint32_t>(found - link_names_.begin());
  }

  [[nodiscard]] PortRef read_port(const Line& line, const std::string& word) const {
    const Ports ports = read_ports(line, word);
    if (ports.range.first != ports.range.last) file_.refuse(line, "a single port, not a range");
    return {ports.router, ports.range.first};
  }

  [[nodiscard]] Ports read_ports(const Line& line, const std::string& word) const {
    const std::size_t colon = word.rfind(':');
    const std::optional<NumberRange> range =
        colon == std::string::npos ? std::nullopt : parse_range(std::string_view(word).substr(colon + 1));
    if (!range) file_.refuse(line, "ROUTER:PORT with a port's number, not \"" + word.substr(0, 64) + "\"");
    const std::string name = word.substr(0, colon);
    const auto found = numbers_.find(name);
    if (found == numbers_.end()) {
      std::vector<std::string> known;
      known.reserve(routers_.size());
      for (const Router& router : routers_) known.push_back(router.name);
      file_.refuse(line,
                   "a router declared above, not \"" + name.substr(0, 64) + "\"" + nearest_name(name, known));
    }
    const Router& router = routers_[found->second];
    if (range->last >= router.used_in.size()) {
      file_.refuse(line, "a port of " + name + " below " + std::to_string(router.used_in.size()) + ": line " +
                             std::to_string(router.line) + " declares no more");
    }
    return {found->second, *range};
  }

  void use(const Line& line, PortRef port) {
    std::uint32_t& used_in = routers_[port.router].used_in[port.port];
    if (used_in != 0) {
      file_.refuse(line, "a free port: line " + std::to_string(used_in) + " uses port " +
                             std::to_string(port.port) + " of " + routers_[port.router].name);
    }
    used_in = line.number;
  }

  void require_all_used() const {
    for (const Router& router : routers_) {
      const auto free = std::find(router.used_in.begin(), router.used_in.end(), 0U);
      if (free == router.used_in.end()) continue;
      const std::string port = router.name + ":" + std::to_string(free - router.used_in.begin());
      file_.refuse("a dangling port " + port, "a node or cable at it, or the line: unused " + port);
    }
  }

  [[nodiscard]] Topology wire() const {
    Topology topology(static_cast<std::uint32_t>(routers_.size()), static_cast<std::uint32_t>(nodes_.size()),
                      numbered_ports(most_ports_));
    for (RouterId router = 0; router < routers_.size(); ++router)
      topology.name_router(router, routers_[router].name);
    for (NodeId node = 0; node < nodes_.size(); ++node) topology.attach(node, nodes_[node]);
    for (const Cable& cable : cables_) topology.connect(cable.one, cable.other, cable.link_class);
    return topology;
  }

  void require_connected(const Topology& topology) const {
    std::vector<RouterId> reached{0};
    std::vector<bool> is_reached(routers_.size());
    is_reached[0] = true;
    for (std::size_t i = 0; i < reached.size(); ++i) {  // `reached` grows during the loop
      for (std::uint32_t port = 0; port < topology.ports_per_router(); ++port) {
        const PortRef next = topology.neighbour({reached[i], port});
        if (!next.is_connected() || is_reached[next.router]) continue;
        is_reached[next.router] = true;
        reached.push_back(next.router);
      }
    }
    const auto lost = std::find(is_reached.begin(), is_reached.end(), false);
    if (lost == is_reached.end()) return;
    file_.refuse("a graph that is not connected",
                 "a path between every two routers; there is none from " + routers_[0].name + " to " +
                     routers_[static_cast<std::size_t>(lost - is_reached.begin())].name);
  }

  TextLines file_;
  const std::vector<std::string>& link_names_;
  std::vector<Router> routers_;
  std::map<std::string, RouterId> numbers_;
  std::vector<PortRef> nodes_;
  std::vector<Cable> cables_;
  std::uint32_t most_ports_ = 0;
};

}  // namespace

template <>
TopologyDescription registered<GraphDescription>() {
  return GraphDescription{};
}

TopologyKind GraphDescription::kind() {
  return {.name = "graph"};
}

Topology make_topology(const GraphDescription& graph) {
  return GraphReader(graph.text, graph.link_names).read();
}

std::vector<std::string> link_sections(const GraphDescription& graph) {
  std::vector<std::string> sections = {"network.link"};
  for (const std::string& name : graph.link_names) sections.push_back("network.links." + name);
  return sections;
}

}  // namespace apenet
