#include "network/routing/table_routing.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "network/topology/text_file.hpp"

namespace apenet {

namespace {

// Parses (a,b-c,*): one range per dimension.
std::optional<std::vector<NumberRange>> parse_coordinates(const std::string& word,
                                                          const std::vector<std::uint32_t>& dims) {
  if (dims.empty() || word.size() < 3 || word.front() != '(' || word.back() != ')') return std::nullopt;
  std::vector<NumberRange> ranges;
  std::size_t begin = 1;
  while (begin < word.size()) {
    const std::size_t end = std::min(word.find(',', begin), word.size() - 1);
    const std::string part = word.substr(begin, end - begin);
    begin = end + 1;
    if (ranges.size() == dims.size()) return std::nullopt;
    const std::uint32_t last = dims[ranges.size()] - 1;
    const auto range = part == "*" ? NumberRange{0, last} : parse_range(part);
    if (!range || range->last > last) return std::nullopt;
    ranges.push_back(*range);
  }
  if (ranges.size() != dims.size()) return std::nullopt;
  return ranges;
}

// Returns the nodes of a cube within the ranges, in ascending order.
std::vector<std::uint32_t> nodes_within(const std::vector<NumberRange>& ranges,
                                        const std::vector<std::uint32_t>& dims) {
  std::vector<std::uint32_t> nodes{0};
  for (std::size_t d = dims.size(); d-- > 0;) {
    std::vector<std::uint32_t> longer;
    for (const std::uint32_t node : nodes) {
      for (std::uint32_t i = ranges[d].first; i <= ranges[d].last; ++i) longer.push_back(node * dims[d] + i);
    }
    nodes = std::move(longer);
  }
  return nodes;
}

class TableReader {
 public:
  TableReader(std::string_view text, const Topology& topology, const std::vector<std::uint32_t>& dims)
      : file_("network.table_file", text),
        topology_(topology),
        dims_(dims),
        table_(std::make_unique<RouteTable>(topology)) {
    for (RouterId router = 0; router < topology.router_count(); ++router)
      routers_.emplace(topology.router_name(router), router);
  }

  std::unique_ptr<const RouteTable> read() {
    for (const TextLines::Line& line : file_.lines()) read_rule(line);
    for (NodeId node = 0; node < topology_.endpoint_count(); ++node) require_arrival(node);
    return std::move(table_);
  }

 private:
  static constexpr std::uint32_t max_classes = 16;

  void read_rule(const TextLines::Line& line) {
    if (line.words.size() != 3 && line.words.size() != 4)
      file_.refuse(line, "ROUTERS DESTINATIONS PORT [CLASS]");
    RouteTable::Route entry;
    entry.port = read_port(line, line.words[2]);
    if (line.words.size() == 4) {
      const auto channel_class = parse_number(line.words[3]);
      if (!channel_class || *channel_class >= max_classes)
        file_.refuse(line, "a class from 0 to " + std::to_string(max_classes - 1));
      entry.channel_class = static_cast<std::uint8_t>(*channel_class);
    }
    bool decides = false;
    const std::vector<NodeId> destinations = read_destinations(line, line.words[1]);
    for (const RouterId router : read_routers(line, line.words[0])) {
      for (const NodeId destination : destinations) {
        if (table_->entry(router, destination).port != RouteTable::Route::no_port) continue;
        table_->set(router, destination, entry);
        decides = true;
      }
    }
    if (!decides) file_.refuse(line, "a rule with an effect: lines above already cover all that it matches");
  }

  [[nodiscard]] std::uint16_t read_port(const TextLines::Line& line, const std::string& word) const {
    const std::vector<std::string>& names = topology_.port_names();
    const auto found = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
      return name == word || name == ":" + word;
    });
    if (found != names.end()) return static_cast<std::uint16_t>(found - names.begin());
    std::string ports = "0 to " + std::to_string(names.size() - 1);
    if (!dims_.empty()) {
      ports.clear();
      for (std::size_t port = 0; port + 1 < names.size(); ++port)
        ports += (port > 0 ? ", " : "") + names[port];
    }
    file_.refuse(line, "a port, " + ports + ", not \"" + word.substr(0, 32) + "\"");
  }

  [[nodiscard]] std::vector<RouterId> read_routers(const TextLines::Line& line,
                                                   const std::string& word) const {
    if (word == "*") return everything(topology_.router_count());
    const auto found = routers_.find(word);
    if (found != routers_.end()) return {found->second};
    const auto coordinates = parse_coordinates(word, dims_);
    if (coordinates) return nodes_within(*coordinates, dims_);
    std::vector<std::string> known;
    known.reserve(routers_.size());
    for (const auto& [name, router] : routers_) known.push_back(name);
    file_.refuse(line,
                 "* or the name of a router, not \"" + word.substr(0, 64) + "\"" + nearest_name(word, known));
  }

  [[nodiscard]] std::vector<NodeId> read_destinations(const TextLines::Line& line,
                                                      const std::string& word) const {
    const std::uint32_t count = topology_.endpoint_count();
    if (word == "*") return everything(count);
    const auto coordinates = parse_coordinates(word, dims_);
    if (coordinates) return nodes_within(*coordinates, dims_);
    const auto range = parse_range(word);
    if (!range || range->last >= count) {
      file_.refuse(line, "destinations, nodes 0 to " + std::to_string(count - 1) + " as *, 7 or 4-7" +
                             (dims_.empty() ? "" : " or by coordinates, as (0,*,1-2)") + ", not \"" +
                             word.substr(0, 64) + "\"");
    }
    std::vector<NodeId> nodes(range->last - range->first + 1);
    std::iota(nodes.begin(), nodes.end(), range->first);
    return nodes;
  }

  static std::vector<std::uint32_t> everything(std::uint32_t count) {
    std::vector<std::uint32_t> all(count);
    std::iota(all.begin(), all.end(), 0U);
    return all;
  }

  [[nodiscard]] std::string name(NodeId node) const {
    return "node " + std::to_string(node) + " at " + topology_.router_name(topology_.attachment(node).router);
  }

  // Checks that the table leads to the destination from every source's router.
  void require_arrival(NodeId destination) {
    arrives_.assign(topology_.router_count(), 0);
    std::vector<RouterId> path;
    for (NodeId source = 0; source < topology_.endpoint_count(); ++source) {
      RouterId router = topology_.attachment(source).router;
      for (path.clear(); arrives_[router] == 0;) {
        arrives_[router] = open;
        path.push_back(router);
        const PortRef port{router, table_->entry(router, destination).port};
        if (port == topology_.attachment(destination)) break;
        router = follow(port, source, destination);
        if (arrives_[router] == open) refuse_loop(path, router, destination);
      }
      for (const RouterId passed : path) arrives_[passed] = done;
    }
  }

  [[nodiscard]] RouterId follow(PortRef port, NodeId source, NodeId destination) const {
    const std::string route =
        "no route at " + topology_.router_name(port.router) + " to " + name(destination);
    if (port.port == RouteTable::Route::no_port)
      file_.refuse(route, "a line for it: packets from " + name(source) + " pass here");
    const PortRef next = topology_.neighbour(port);
    if (!next.is_connected())
      file_.refuse(route, "a port with a cable: " + topology_.link_name(port) + " leads to no router");
    return next.router;
  }

  void refuse_loop(const std::vector<RouterId>& path, RouterId closing, NodeId destination) const {
    std::string loop;
    for (const RouterId router : path) {
      if (loop.empty() && router != closing) continue;
      loop += topology_.link_name({router, table_->entry(router, destination).port}) + " -> ";
    }
    file_.refuse("a loop on the way to " + name(destination),
                 "routes that arrive, not " + loop + topology_.router_name(closing));
  }

  static constexpr std::uint8_t open = 1;
  static constexpr std::uint8_t done = 2;

  TextLines file_;
  const Topology& topology_;
  const std::vector<std::uint32_t>& dims_;
  std::unique_ptr<RouteTable> table_;
  std::map<std::string, RouterId> routers_;
  std::vector<std::uint8_t> arrives_;  // per router, for one destination
};

}  // namespace

std::unique_ptr<const RouteTable> read_table(std::string_view text, const Topology& topology,
                                             const std::vector<std::uint32_t>& dims) {
  return TableReader(text, topology, dims).read();
}

}  // namespace apenet
