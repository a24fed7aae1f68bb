// The load of links, and distances, without simulating the network.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <stdexcept>

#include "bindings.hpp"
#include "network/link_loads.hpp"

namespace nb = nanobind;

namespace apenet {

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
}

}  // namespace apenet
