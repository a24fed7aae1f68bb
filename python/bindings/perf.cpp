// The work by which the simulator's own speed is measured. The caller reads the clock.
#include <nanobind/stl/array.h>

#include "bindings.hpp"
#include "runtime/perf/dslash_work.hpp"
#include "runtime/scripted/workload_run.hpp"

namespace nb = nanobind;

namespace apenet {
namespace {

// The exact work of a measured run, identical on every host.
struct WorkDone {
  std::uint64_t nodes = 0;
  std::uint64_t messages = 0;
  std::uint64_t packets = 0;
  std::uint64_t hops = 0;  // links crossed by packets
  std::uint64_t events = 0;
  Time virtual_time;
};

WorkDone run_work(WorkloadRun& workload) {
  CardRun& run = workload.card_run();
  run.run();
  WorkDone done{.nodes = run.machine().node_count(),
                .hops = run.machine().link_crossings(),
                .events = run.simulation().event_count(),
                .virtual_time = run.simulation().now()};
  for (const Counter& counter : run.machine().counters()) {
    if (counter.name == "messages") done.messages = counter.value;
    if (counter.name == "packets") done.packets = counter.value;
  }
  return done;
}

}  // namespace

void bind_perf(nb::module_& module) {
  nb::class_<DslashWork>(module, "DslashWork")
      .def(nb::init<const std::array<std::uint32_t, 4>&>(), nb::arg("extents"))
      .def_ro_static("flops_per_site", &DslashWork::flops_per_site)
      .def_ro_static("bytes_per_site", &DslashWork::bytes_per_site)
      .def_prop_ro("sites", &DslashWork::sites)
      .def("apply", &DslashWork::apply, nb::call_guard<nb::gil_scoped_release>());

  nb::class_<WorkDone>(module, "WorkDone")
      .def_ro("nodes", &WorkDone::nodes)
      .def_ro("messages", &WorkDone::messages)
      .def_ro("packets", &WorkDone::packets)
      .def_ro("hops", &WorkDone::hops)
      .def_ro("events", &WorkDone::events)
      .def_prop_ro("virtual_ps", [](const WorkDone& self) { return self.virtual_time.ps(); });
  nb::class_<WorkloadRun>(module, "WorkloadWork")
      .def(nb::init<const MachineDescription&, const Workload&, const WorkloadOptions&>(),
           nb::arg("description"), nb::arg("workload"), nb::arg("options"))
      .def("run", &run_work, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace apenet
