#include "network/faults/fault_schedule.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "kernel/refuse.hpp"
#include "network/topology/text_file.hpp"

namespace apenet {

namespace {

std::string shown(std::string_view text) {
  return quoted(text, 100);
}

[[noreturn]] void refuse(const std::string& text, const std::string& expected) {
  refuse_value("fault", shown(text), expected);
}

constexpr const char* form = "link|node|switch NAME down @TIME [up @TIME ...]";

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    if (c != ' ' && c != '\t') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  return words;
}

std::optional<std::int64_t> unit_ps(std::string_view unit) {
  constexpr std::pair<const char*, std::int64_t> units[] = {
      {"ps", 1}, {"ns", 1'000}, {"us", 1'000'000}, {"ms", 1'000'000'000}, {"s", 1'000'000'000'000}};
  for (const auto& [name, ps] : units) {
    if (unit == name) return ps;
  }
  return std::nullopt;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Parses "10us" or "1.5ms": a whole number of picoseconds up to 10^18 (eleven days).
std::optional<Time> parse_time(std::string_view text) {
  constexpr std::int64_t most_ps = 1'000'000'000'000'000'000;
  const auto digits = static_cast<std::size_t>(
      std::find_if(text.begin(), text.end(), [](char c) { return !is_digit(c) && c != '.'; }) - text.begin());
  const std::optional<std::int64_t> unit = unit_ps(text.substr(digits));
  if (!unit || digits == 0 || !is_digit(text[0]) || !is_digit(text[digits - 1])) return std::nullopt;
  std::int64_t scale = *unit;  // scale of the next digit after the point
  std::int64_t ps = 0;
  bool is_fraction = false;
  for (const char c : text.substr(0, digits)) {
    if (c == '.') {
      if (std::exchange(is_fraction, true)) return std::nullopt;
      continue;
    }
    const std::int64_t digit = c - '0';
    if (!is_fraction) {
      if (ps > (most_ps - digit * *unit) / 10) return std::nullopt;
      ps = ps * 10 + digit * *unit;
      continue;
    }
    if (scale % 10 != 0 && digit != 0) return std::nullopt;
    scale /= 10;
    ps += digit * scale;
  }
  return ps <= most_ps ? std::optional(Time::from_ps(ps)) : std::nullopt;
}

}  // namespace

Fault parse_fault(const std::string& text) {
  const std::vector<std::string> words = words_of(text);
  Fault fault;
  fault.text = text;
  if (words.empty()) refuse(text, form);
  if (words[0] == "link") {
    fault.kind = FaultKind::link;
  } else if (words[0] == "node") {
    fault.kind = FaultKind::node;
  } else if (words[0] == "switch") {
    fault.kind = FaultKind::router;
  } else {
    refuse(text, std::string(form) + ", not " + shown(words[0]) +
                     nearest_name(words[0], {"link", "node", "switch"}));
  }
  if (words.size() < 4 || words.size() % 2 != 0) refuse(text, form);
  fault.name = words[1];
  for (std::size_t i = 2; i < words.size(); i += 2) {
    const bool is_up = i % 4 == 0;
    if (words[i] != (is_up ? "up" : "down")) {
      refuse(text, std::string(is_up ? "up" : "down") + " where " + shown(words[i]) +
                       " stands: first down, then up and down alternately");
    }
    const std::string& when = words[i + 1];
    const std::optional<Time> time =
        when[0] == '@' ? parse_time(std::string_view(when).substr(1)) : std::nullopt;
    if (!time) {
      refuse(text, "a time such as @10us, a whole number of picoseconds with ps, ns, us, ms or s, where " +
                       shown(when) + " stands");
    }
    if (!fault.changes.empty() && *time <= fault.changes.back().time) {
      refuse(text, "increasing times: " + when + " is not after " + words[i - 1]);
    }
    fault.changes.push_back({*time, is_up});
  }
  return fault;
}

std::string time_text(Time time) {
  constexpr std::int64_t ps_per_us = 1'000'000;
  std::string fraction = std::to_string(time.ps() % ps_per_us);
  fraction.insert(0, 6 - fraction.size(), '0');
  fraction.erase(fraction.find_last_not_of('0') + 1);
  return std::to_string(time.ps() / ps_per_us) + (fraction.empty() ? "" : "." + fraction) + " us";
}

void Liveness::change(const std::vector<PortRef>& ports, bool is_up) {
  for (const PortRef port : ports) {
    std::uint32_t& causes = dead_causes_[index(port)];
    if (is_up) {
      if (--causes == 0) --dead_ports_;
    } else {
      if (causes++ == 0) ++dead_ports_;
    }
  }
}

std::vector<std::uint32_t> Liveness::find_islands(const Topology& topology) const {
  std::vector<std::uint32_t> of_router(topology.router_count(), no_island);
  std::vector<RouterId> reached;
  for (RouterId start = 0; start < topology.router_count(); ++start) {
    if (of_router[start] != no_island) continue;
    of_router[start] = start;
    reached.assign(1, start);
    for (std::size_t i = 0; i < reached.size(); ++i) {  // `reached` grows during the loop
      for (std::uint32_t port = 0; port < ports_; ++port) {
        const PortRef next = topology.neighbour({reached[i], port});
        if (!next.is_connected() || !is_alive({reached[i], port}) || of_router[next.router] != no_island)
          continue;
        of_router[next.router] = start;
        reached.push_back(next.router);
      }
    }
  }
  std::vector<std::uint32_t> islands;
  for (NodeId node = 0; node < topology.endpoint_count(); ++node) {
    const PortRef attachment = topology.attachment(node);
    islands.push_back(is_alive(attachment) ? of_router[attachment.router] : no_island);
  }
  return islands;
}

namespace {

// Maps names of a topology to the ports that a fault takes down.
class FaultResolver {
 public:
  explicit FaultResolver(const Topology& topology) : topology_(topology), attached_(topology.router_count()) {
    for (NodeId node = 0; node < topology.endpoint_count(); ++node) {
      attached_[topology.attachment(node).router].push_back(node);
    }
    is_direct_ = std::all_of(attached_.begin(), attached_.end(),
                             [](const std::vector<NodeId>& nodes) { return nodes.size() == 1; });
  }

  [[nodiscard]] std::vector<PortRef> ports_of(const Fault& fault) const {
    switch (fault.kind) {
      case FaultKind::link:
        return link(fault);
      case FaultKind::node:
        return node(fault);
      case FaultKind::router:
        break;
    }
    return whole_router(find_router(fault, "a switch of this machine"));
  }

 private:
  [[nodiscard]] std::vector<PortRef> link(const Fault& fault) const {
    std::vector<std::string> known;
    for (RouterId router = 0; router < topology_.router_count(); ++router) {
      for (std::uint32_t port = 0; port < topology_.ports_per_router(); ++port) {
        const PortRef next = topology_.neighbour({router, port});
        if (!next.is_connected()) continue;
        known.push_back(topology_.link_name({router, port}));
        if (known.back() == fault.name) return {{router, port}, next};
      }
    }
    const std::string example = known.empty() ? "; it has none" : ", such as " + known.front();
    refuse(fault.text,
           "a link of this machine" + example + ", not " + shown(fault.name) + near(fault.name, known));
  }

  [[nodiscard]] std::vector<PortRef> node(const Fault& fault) const {
    const std::optional<std::uint32_t> number = parse_number(fault.name);
    const std::string expected = "a node of this machine, a number below " +
                                 std::to_string(topology_.endpoint_count()) +
                                 (is_direct_ ? " or its name, such as " + topology_.router_name(0) : "");
    if (number && *number >= topology_.endpoint_count()) refuse(fault.text, expected);
    if (!number && !is_direct_) refuse(fault.text, expected);
    if (!is_direct_) return {topology_.attachment(*number)};
    return whole_router(number ? topology_.attachment(*number).router : find_router(fault, expected));
  }

  [[nodiscard]] RouterId find_router(const Fault& fault, const std::string& expected) const {
    std::vector<std::string> known;
    for (RouterId router = 0; router < topology_.router_count(); ++router) {
      known.push_back(topology_.router_name(router));
      if (known.back() == fault.name) return router;
    }
    refuse(fault.text, expected + ", not " + shown(fault.name) + near(fault.name, known));
  }

  [[nodiscard]] std::vector<PortRef> whole_router(RouterId router) const {
    std::vector<PortRef> ports;
    for (std::uint32_t port = 0; port < topology_.ports_per_router(); ++port) {
      const PortRef next = topology_.neighbour({router, port});
      if (!next.is_connected()) continue;
      ports.push_back({router, port});
      ports.push_back(next);
    }
    for (const NodeId attached : attached_[router]) ports.push_back(topology_.attachment(attached));
    return ports;
  }

  // Skips very large machines: comparing all names would take longer than the hint is worth.
  static std::string near(const std::string& name, const std::vector<std::string>& known) {
    constexpr std::size_t most_names = 100'000;
    return known.size() > most_names ? std::string() : nearest_name(name, known);
  }

  const Topology& topology_;
  std::vector<std::vector<NodeId>> attached_;  // per router
  bool is_direct_ = false;                     // every router has exactly one node
};

}  // namespace

FaultSchedule::FaultSchedule(const Topology& topology, const std::vector<std::string>& texts) {
  const FaultResolver resolver(topology);
  for (const std::string& text : texts) {
    faults_.push_back(parse_fault(text));
    ports_.push_back(resolver.ports_of(faults_.back()));
    const auto index = static_cast<std::uint32_t>(faults_.size() - 1);
    for (const Fault::Change& change : faults_.back().changes) {
      changes_.push_back({change.time, index, change.is_up});
    }
  }
  std::stable_sort(changes_.begin(), changes_.end(),
                   [](const Change& one, const Change& other) { return one.time < other.time; });
}

}  // namespace apenet
