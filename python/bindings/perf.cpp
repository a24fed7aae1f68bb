// The work by which the simulator's own speed is measured. Whoever calls it looks at the clock.
#include "bindings.hpp"
#include "runtime/perf/halo_work.hpp"
#include "runtime/perf/packet_work.hpp"

namespace nb = nanobind;

namespace apenet {

void bind_perf(nb::module_& module) {
  nb::class_<WorkDone>(module, "WorkDone")
      .def_ro("nodes", &WorkDone::nodes)
      .def_ro("messages", &WorkDone::messages)
      .def_ro("packets", &WorkDone::packets)
      .def_ro("hops", &WorkDone::hops)
      .def_ro("events", &WorkDone::events)
      .def_prop_ro("virtual_ps", [](const WorkDone& self) { return self.virtual_time.ps(); });

  nb::class_<PacketWorkOptions>(module, "PacketWorkOptions")
      .def(nb::init<>())
      .def_rw("packets_per_node", &PacketWorkOptions::packets_per_node)
      .def_rw("payload_bytes", &PacketWorkOptions::payload_bytes)
      .def_rw("far_percent", &PacketWorkOptions::far_percent)
      .def_prop_rw(
          "interval_ps", [](const PacketWorkOptions& self) { return self.interval.ps(); },
          [](PacketWorkOptions& self, std::int64_t ps) { self.interval = Time::from_ps(ps); });
  nb::class_<PacketWork>(module, "PacketWork")
      .def(nb::init<const MachineDescription&, const PacketWorkOptions&>(), nb::arg("description"),
           nb::arg("options"))
      .def("run", &PacketWork::run, nb::call_guard<nb::gil_scoped_release>());

  nb::class_<HaloWorkOptions>(module, "HaloWorkOptions")
      .def(nb::init<>())
      .def_rw("exchanges", &HaloWorkOptions::exchanges);
  nb::class_<HaloWork>(module, "HaloWork")
      .def(nb::init<const MachineDescription&, const HaloWorkOptions&>(), nb::arg("description"),
           nb::arg("options"))
      .def("run", &HaloWork::run, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace apenet
