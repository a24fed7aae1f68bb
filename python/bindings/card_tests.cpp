// The card-level tests, on processes that use the card directly.
#include "runtime/scripted/card_tests.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"

namespace nb = nanobind;

namespace apenet {

void bind_card_tests(nb::module_& module) {
  nb::enum_<CardTest>(module, "CardTest")
      .value("pingpong", CardTest::pingpong)
      .value("pingping", CardTest::pingping)
      .value("roundtrip", CardTest::roundtrip)
      .value("oneway", CardTest::oneway)
      .value("unidirectional", CardTest::unidirectional)
      .value("bidirectional", CardTest::bidirectional)
      .value("flush", CardTest::flush)
      .value("rate", CardTest::rate);

  nb::enum_<Buffer>(module, "Buffer")
      .value("host", Buffer::host)
      .value("host_copied", Buffer::host_copied)
      .value("gpu", Buffer::gpu)
      .value("gpu_staged", Buffer::gpu_staged);

  nb::enum_<Path>(module, "Path")
      .value("automatic", Path::automatic)
      .value("send", Path::send)
      .value("put", Path::put);

  nb::class_<CardTestOptions>(module, "CardTestOptions")
      .def(nb::init<>())
      .def_rw("sizes", &CardTestOptions::sizes)
      .def_rw("iterations", &CardTestOptions::iterations)
      .def_rw("channels", &CardTestOptions::channels)
      .def_rw("nodes", &CardTestOptions::nodes)
      .def_rw("window", &CardTestOptions::window)
      .def_rw("local", &CardTestOptions::local)
      .def_rw("remote", &CardTestOptions::remote)
      .def_rw("path", &CardTestOptions::path)
      .def_rw("until_landed", &CardTestOptions::until_landed)
      .def_rw("region_bytes", &CardTestOptions::region_bytes);

  nb::class_<TestPoint>(module, "TestPoint")
      .def_ro("size_bytes", &TestPoint::size_bytes)
      .def_prop_ro("time_ps", [](const TestPoint& self) { return self.time.ps(); })
      .def_ro("bandwidth_mib_s", &TestPoint::bandwidth_mib_s)
      .def_ro("warnings", &TestPoint::warnings);

  module.def(
      "count_card_test_packet_hops",
      nb::overload_cast<const MachineDescription&, CardTest, const CardTestOptions&>(&count_packet_hops),
      nb::arg("description"), nb::arg("test"), nb::arg("options"), nb::call_guard<nb::gil_scoped_release>());
  module.def("run_card_test", &run_card_test, nb::arg("description"), nb::arg("test"), nb::arg("options"),
             nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace apenet
