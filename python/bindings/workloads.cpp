// Workloads of a whole machine, on processes that use the card directly.
#include "runtime/scripted/workload_run.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"

namespace nb = nanobind;

namespace apenet {

namespace {

const char* text_of(Workload::BandwidthOf whose) {
  switch (whose) {
    case Workload::BandwidthOf::node:
      return "node";
    case Workload::BandwidthOf::vector:
      return "vector";
    case Workload::BandwidthOf::cut:
      return "cut";
  }
  return "";
}

}  // namespace

void bind_workloads(nb::module_& module) {
  nb::class_<Workload>(module, "Workload")
      .def_prop_ro("name", [](const Workload& self) { return std::string(self.name); })
      .def_prop_ro("definition", [](const Workload& self) { return std::string(self.definition); })
      .def_prop_ro("bandwidth_of",
                   [](const Workload& self) { return std::string(text_of(self.bandwidth_of)); })
      .def_prop_ro("is_folded", [](const Workload& self) { return self.grid == Workload::Grid::folded; })
      .def_prop_ro("is_of_lattice", [](const Workload& self) { return self.grid == Workload::Grid::lattice; })
      .def_prop_ro("is_row", [](const Workload& self) { return self.grid == Workload::Grid::row; })
      .def_ro("rounds", &Workload::rounds)
      .def_ro("has_surfaces", &Workload::has_surfaces)
      .def_ro("has_programs", &Workload::has_programs)
      .def_ro("has_partitions", &Workload::has_partitions)
      .def_prop_ro("algorithms", [](const Workload& self) {
        std::vector<std::string> names;
        for (const WorkloadAlgorithm& one : self.algorithms) names.emplace_back(one.name);
        return names;
      });
  module.def(
      "workloads",
      [] {
        const std::span<const Workload* const> all = workloads();
        return std::vector<const Workload*>(all.begin(), all.end());
      },
      nb::rv_policy::reference);
  module.def("workload", &workload, nb::arg("name"), nb::rv_policy::reference);

  nb::class_<WorkloadOptions>(module, "WorkloadOptions")
      .def(nb::init<>())
      .def_rw("bytes", &WorkloadOptions::bytes)
      .def_rw("face_bytes", &WorkloadOptions::face_bytes)
      .def_rw("rounds", &WorkloadOptions::rounds)
      .def_rw("algorithm", &WorkloadOptions::algorithm)
      .def_rw("grid", &WorkloadOptions::grid)
      .def_rw("periodic", &WorkloadOptions::periodic)
      .def_rw("sites", &WorkloadOptions::sites)
      .def_rw("site_bytes", &WorkloadOptions::site_bytes)
      .def_rw("updates", &WorkloadOptions::updates)
      .def_rw("look_ahead", &WorkloadOptions::look_ahead)
      .def_rw("nodes", &WorkloadOptions::nodes);

  nb::class_<WorkloadStreams>(module, "WorkloadStreams")
      .def(nb::init<const Workload&, const WorkloadOptions&, const MachineDescription&>(),
           nb::arg("workload"), nb::arg("options"), nb::arg("description"))
      .def("goal_of", &WorkloadStreams::goal_of, nb::arg("process"));

  nb::class_<WorkloadResult>(module, "WorkloadResult")
      .def_prop_ro("time_ps", [](const WorkloadResult& self) { return self.time.ps(); })
      .def_prop_ro(
          "finish_ps", [](const WorkloadResult& self) { return picoseconds(self.finish); },
          nb::rv_policy::automatic)
      .def_ro("messages", &WorkloadResult::messages)
      .def_ro("payload_bytes", &WorkloadResult::payload_bytes)
      .def_ro("links", &WorkloadResult::links)
      .def_ro("warnings", &WorkloadResult::warnings);

  nb::class_<PacketHops>(module, "PacketHops")
      .def_ro("all", &PacketHops::all)
      .def_ro("forwarded", &PacketHops::forwarded);
  nb::class_<MessageWork>(module, "MessageWork")
      .def(nb::init<const MachineDescription&>(), nb::arg("description"))
      .def("of", &MessageWork::of, nb::arg("from_node"), nb::arg("to_node"), nb::arg("bytes"));
  module.def("count_workload_packet_hops",
             nb::overload_cast<const MachineDescription&, const Workload&, const WorkloadOptions&>(
                 &count_packet_hops),
             nb::arg("description"), nb::arg("workload"), nb::arg("options"),
             nb::call_guard<nb::gil_scoped_release>());
  module.def("run_workload", &run_workload, nb::arg("description"), nb::arg("workload"), nb::arg("options"),
             nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace apenet
