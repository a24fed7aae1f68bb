// The work by which the simulator's own speed is measured. The caller reads the clock.
#include <nanobind/stl/array.h>

#include "bindings.hpp"
#include "runtime/perf/dslash_work.hpp"
#include "runtime/perf/halo_work.hpp"

namespace nb = nanobind;

namespace apenet {

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

  nb::class_<HaloWorkOptions>(module, "HaloWorkOptions")
      .def(nb::init<>())
      .def_rw("exchanges", &HaloWorkOptions::exchanges);
  nb::class_<HaloWork>(module, "HaloWork")
      .def(nb::init<const MachineDescription&, const HaloWorkOptions&>(), nb::arg("description"),
           nb::arg("options"))
      .def("run", &HaloWork::run, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace apenet
