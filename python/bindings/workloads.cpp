// Workloads of a whole machine, on scripted processes.
#include "runtime/scripted/workloads.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"

namespace nb = nanobind;

namespace apenet {

void bind_workloads(nb::module_& module) {
  nb::enum_<Workload>(module, "Workload")
      .value("halo", Workload::halo)
      .value("alltoall", Workload::alltoall)
      .value("allreduce", Workload::allreduce)
      .value("randompairs", Workload::randompairs)
      .value("bisection", Workload::bisection)
      .value("fft", Workload::fft);
  nb::enum_<AllreduceAlgorithm>(module, "AllreduceAlgorithm")
      .value("ring", AllreduceAlgorithm::ring)
      .value("recursive_doubling", AllreduceAlgorithm::recursive_doubling)
      .value("torus", AllreduceAlgorithm::torus);

  nb::class_<WorkloadOptions>(module, "WorkloadOptions")
      .def(nb::init<>())
      .def_rw("bytes", &WorkloadOptions::bytes)
      .def_rw("face_bytes", &WorkloadOptions::face_bytes)
      .def_rw("iterations", &WorkloadOptions::iterations)
      .def_rw("algorithm", &WorkloadOptions::algorithm)
      .def_rw("grid", &WorkloadOptions::grid)
      .def_rw("periodic", &WorkloadOptions::periodic)
      .def_rw("nodes", &WorkloadOptions::nodes);

  nb::class_<WorkloadResult>(module, "WorkloadResult")
      .def_prop_ro("time_ps", [](const WorkloadResult& self) { return self.time.ps(); })
      .def_prop_ro(
          "finish_ps", [](const WorkloadResult& self) { return picoseconds(self.finish); },
          nb::rv_policy::automatic)
      .def_ro("messages", &WorkloadResult::messages)
      .def_ro("payload_bytes", &WorkloadResult::payload_bytes)
      .def_ro("links", &WorkloadResult::links)
      .def_ro("warnings", &WorkloadResult::warnings);

  module.def("count_forwarded_packet_hops", &count_forwarded_packet_hops, nb::arg("description"),
             nb::arg("workload"), nb::arg("options"), nb::arg("enough"),
             nb::call_guard<nb::gil_scoped_release>());
  module.def("run_workload", &run_workload, nb::arg("description"), nb::arg("workload"), nb::arg("options"),
             nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace apenet
