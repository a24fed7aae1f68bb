// The gateway between network interfaces of the host and a simulated network.
#include "runtime/gateway/ip_gateway.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.hpp"

namespace nb = nanobind;

namespace apenet {

void bind_gateway(nb::module_& module) {
  using Ports = std::vector<std::tuple<NodeId, std::uint32_t, int>>;
  nb::class_<IpGateway::Counters>(module, "IpGatewayCounters")
      .def_ro("packets", &IpGateway::Counters::packets)
      .def_ro("bytes", &IpGateway::Counters::bytes)
      .def_ro("lost", &IpGateway::Counters::lost)
      .def_ro("unreachable", &IpGateway::Counters::unreachable)
      .def_ro("refused", &IpGateway::Counters::refused)
      .def_ro("late", &IpGateway::Counters::late)
      .def_prop_ro("latest_ps", [](const IpGateway::Counters& self) { return self.latest.ps(); });
  nb::class_<IpGateway>(module, "IpGateway")
      .def(
          "__init__",
          [](IpGateway* self, const MachineDescription& description, const Ports& given,
             const std::string& capture_path, std::int64_t date_s) {
            std::vector<IpGateway::Port> ports;
            for (const auto& [node, address, interface_fd] : given)
              ports.push_back({node, address, interface_fd});
            new (self) IpGateway(description, std::move(ports), capture_path, date_s);
          },
          nb::arg("description"), nb::arg("ports"), nb::arg("capture_path"), nb::arg("date_s"),
          "ports: node, address and descriptor of each interface.")
      .def("run", &IpGateway::run, nb::arg("stop_fd"), nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("counters", [](const IpGateway& self) { return self.counters(); });
}

}  // namespace apenet
