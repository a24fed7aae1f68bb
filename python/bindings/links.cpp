// Cables, the load of links, and distances, without simulating the network.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "bindings.hpp"
#include "network/faults/fault_schedule.hpp"
#include "network/link_loads.hpp"

namespace nb = nanobind;

namespace apenet {

namespace {

// The end of a cable: router and port.
using CableEnd = std::tuple<RouterId, std::uint32_t>;

// A network's graph, as its topology connects it.
struct Wiring {
  std::vector<std::string> routers;                                   // their names
  std::vector<RouterId> routers_of_nodes;                             // by node
  std::vector<std::tuple<CableEnd, CableEnd, std::uint32_t>> cables;  // two ends, and the link class
  std::vector<std::string> sections;  // by link class, for what differs from [network.link]
  // Each link's name and the routers at its ends, in the order of LinkLoads::bytes.
  std::vector<std::tuple<std::string, RouterId, RouterId>> links;
};

Wiring wiring(const NetworkDescription& network) {
  const Topology topology = network.topology.make();
  Wiring result;
  result.sections = network.topology.link_classes();
  for (NodeId node = 0; node < topology.endpoint_count(); ++node)
    result.routers_of_nodes.push_back(topology.attachment(node).router);
  for (RouterId router = 0; router < topology.router_count(); ++router) {
    result.routers.push_back(topology.router_name(router));
    for (std::uint32_t port = 0; port < topology.ports_per_router(); ++port) {
      const PortRef other = topology.neighbour({router, port});
      if (!other.is_connected()) continue;
      result.links.emplace_back(topology.link_name({router, port}), router, other.router);
      const bool is_first = std::tie(router, port) < std::tie(other.router, other.port);
      if (!is_first) continue;
      result.cables.emplace_back(CableEnd(router, port), CableEnd(other.router, other.port),
                                 topology.link_class({router, port}));
    }
  }
  return result;
}

// What a fault takes away while it lasts.
struct FaultyParts {
  std::string fault;               // its text
  std::vector<NodeId> nodes;       // those whose connection it cuts
  std::vector<std::string> links;  // their names
};

std::vector<FaultyParts> faulty_parts(const NetworkDescription& network) {
  const Topology topology = network.topology.make();
  std::vector<FaultyParts> result;
  for (const std::string& text : network.faults) {
    const FaultSchedule schedule(topology, {text});
    Liveness liveness(topology);
    schedule.apply(schedule.changes().front(), liveness);
    FaultyParts& parts = result.emplace_back();
    parts.fault = text;
    for (NodeId node = 0; node < topology.endpoint_count(); ++node)
      if (!liveness.is_alive(topology.attachment(node))) parts.nodes.push_back(node);
    for (RouterId router = 0; router < topology.router_count(); ++router) {
      for (std::uint32_t port = 0; port < topology.ports_per_router(); ++port) {
        const bool is_link = topology.neighbour({router, port}).is_connected();
        if (is_link && !liveness.is_alive({router, port}))
          parts.links.push_back(topology.link_name({router, port}));
      }
    }
  }
  return result;
}

}  // namespace

void bind_links(nb::module_& module) {
  nb::class_<LinkLoads>(module, "LinkLoads")
      .def_ro("hops", &LinkLoads::hops)
      .def_ro("bytes", &LinkLoads::bytes)
      .def_ro("busiest", &LinkLoads::busiest);
  module.def(
      "link_loads",
      [](const NetworkDescription& network, const std::vector<NodeId>& from, const std::vector<NodeId>& to,
         const std::vector<std::int64_t>& bytes) {
        if (from.size() != to.size() || from.size() != bytes.size())
          throw std::invalid_argument("from, to, bytes: expected the same length");
        std::vector<Flow> flows;
        flows.reserve(from.size());
        for (std::size_t i = 0; i < from.size(); ++i) flows.push_back({from[i], to[i], bytes[i]});
        return link_loads(network, flows);
      },
      nb::arg("network"), nb::arg("from_nodes"), nb::arg("to_nodes"), nb::arg("bytes"),
      nb::call_guard<nb::gil_scoped_release>(),
      "What flows between nodes of the network put on each link, by its routing.");
  module.def(
      "hop_counts", [](const NetworkDescription& network) { return integers(hop_counts(network)); },
      nb::arg("network"), "The fewest links between all pairs of nodes, row after row.");
  nb::class_<Wiring>(module, "Wiring")
      .def_ro("routers", &Wiring::routers)
      .def_ro("routers_of_nodes", &Wiring::routers_of_nodes)
      .def_ro("cables", &Wiring::cables)
      .def_ro("sections", &Wiring::sections)
      .def_ro("links", &Wiring::links);
  nb::class_<FaultyParts>(module, "FaultyParts")
      .def_ro("fault", &FaultyParts::fault)
      .def_ro("nodes", &FaultyParts::nodes)
      .def_ro("links", &FaultyParts::links);
  module.def("faulty_parts", &faulty_parts, nb::arg("network"),
             "Of each fault of the description, the nodes and links that it takes away while it lasts.");
  module.def(
      "wiring", &wiring, nb::arg("network"),
      "The graph of a network: names of routers, the router of each node, and each cable as ((router, port), "
      "(router, port), link class). Raises ValueError when it cannot be built.");
}

}  // namespace apenet
