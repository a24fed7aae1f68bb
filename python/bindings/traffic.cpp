// Synthetic traffic on a network alone.
#include "runtime/traffic/traffic.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "bindings.hpp"
#include "runtime/traffic/traffic_pattern.hpp"

namespace nb = nanobind;

namespace apenet {

void bind_traffic(nb::module_& module) {
  nb::class_<TrafficOptions>(module, "TrafficOptions")
      .def(nb::init<>())
      .def_rw("pattern", &TrafficOptions::pattern)
      .def_rw("load", &TrafficOptions::load)
      .def_rw("packet_flits", &TrafficOptions::packet_flits)
      .def_rw("seed", &TrafficOptions::seed)
      .def_rw("warmup_cycles", &TrafficOptions::warmup_cycles)
      .def_rw("measure_cycles", &TrafficOptions::measure_cycles)
      .def_rw("drain_cycles", &TrafficOptions::drain_cycles)
      .def_rw("measures_queued", &TrafficOptions::measures_queued)
      .def(
          "set_partition",
          [](TrafficOptions& self, std::vector<NodeId> nodes, std::vector<std::uint32_t> extents) {
            self.partition = {std::move(nodes), std::move(extents)};
          },
          nb::arg("nodes"), nb::arg("extents"));

  nb::class_<TrafficPoint>(module, "TrafficPoint")
      .def_ro("offered", &TrafficPoint::offered)
      .def_ro("accepted", &TrafficPoint::accepted)
      .def_ro("least_accepted", &TrafficPoint::least_accepted)
      .def_ro("most_accepted", &TrafficPoint::most_accepted)
      .def_ro("packet_latency_cycles", &TrafficPoint::packet_latency_cycles)
      .def_ro("network_latency_cycles", &TrafficPoint::network_latency_cycles)
      .def_ro("min_latency_cycles", &TrafficPoint::min_latency_cycles)
      .def_ro("max_latency_cycles", &TrafficPoint::max_latency_cycles)
      .def_ro("hops", &TrafficPoint::hops)
      .def_ro("is_saturated", &TrafficPoint::is_saturated)
      .def_ro("packets", &TrafficPoint::packets)
      .def_ro("link_flits", &TrafficPoint::link_flits)
      .def_ro("cycles", &TrafficPoint::cycles)
      .def_ro("warnings", &TrafficPoint::warnings);

  module.def("traffic_patterns", &TrafficPattern::names);
  module.def("count_link_crossings", &count_link_crossings, nb::arg("network"), nb::arg("options"),
             nb::call_guard<nb::gil_scoped_release>());
  module.def("run_traffic", &run_traffic, nb::arg("network"), nb::arg("options"),
             nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace apenet
