// Descriptions: the plain data that python/apenet/machine fills.
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "fields.hpp"
#include "machine/description.hpp"
#include "machine/machine.hpp"
#include "network/routing/arrangement.hpp"

namespace apenet {

namespace {

void bind_network(nb::module_& module) {
  nb::class_<DataRate>(module, "DataRate")
      .def(
          "__init__",
          [](DataRate* self, std::int64_t bytes, std::int64_t per_cycles, std::int64_t frequency_hz) {
            new (self) DataRate{bytes, per_cycles, frequency_hz};
          },
          nb::arg("bytes"), nb::arg("per_cycles"), nb::arg("frequency_hz"))
      .def_ro("bytes", &DataRate::bytes)
      .def_ro("per_cycles", &DataRate::per_cycles)
      .def_ro("frequency_hz", &DataRate::frequency_hz);

  nb::class_<LinkDescription> link(module, "LinkDescription");
  link.def(nb::init<>()).def_rw("rate", &LinkDescription::rate);
  link.def_rw("bit_error_rate", &LinkDescription::bit_error_rate);
  def_time(link, "latency_ps", &LinkDescription::latency);

  nb::enum_<NetworkDescription::Topology>(module, "Topology")
      .value("none", NetworkDescription::Topology::none)
      .value("torus", NetworkDescription::Topology::torus)
      .value("mesh", NetworkDescription::Topology::mesh)
      .value("fat_tree", NetworkDescription::Topology::fat_tree)
      .value("crossbar", NetworkDescription::Topology::crossbar)
      .value("graph", NetworkDescription::Topology::graph);
  nb::enum_<NetworkDescription::Routing>(module, "Routing")
      .value("dimension_order", NetworkDescription::Routing::dimension_order)
      .value("dimension_order_entry_class", NetworkDescription::Routing::dimension_order_entry_class)
      .value("minimal_adaptive", NetworkDescription::Routing::minimal_adaptive)
      .value("destination_mod", NetworkDescription::Routing::destination_mod)
      .value("up_down", NetworkDescription::Routing::up_down)
      .value("table", NetworkDescription::Routing::table);
  nb::enum_<NetworkDescription::Engine>(module, "Engine")
      .value("packet", NetworkDescription::Engine::packet)
      .value("flit", NetworkDescription::Engine::flit);
  nb::enum_<NetworkDescription::Switching>(module, "Switching")
      .value("virtual_cut_through", NetworkDescription::Switching::virtual_cut_through)
      .value("wormhole", NetworkDescription::Switching::wormhole);
  nb::enum_<NetworkDescription::ChannelSelection>(module, "ChannelSelection")
      .value("lane", NetworkDescription::ChannelSelection::lane)
      .value("any", NetworkDescription::ChannelSelection::any);

  nb::class_<RouterPipeline> pipeline(module, "RouterPipeline");
  pipeline.def(nb::init<>())
      .def_rw("clock_hz", &RouterPipeline::clock_hz)
      .def_rw("flit_bytes", &RouterPipeline::flit_bytes)
      .def_rw("routing_delay_cycles", &RouterPipeline::routing_delay_cycles)
      .def_rw("vc_allocation_delay_cycles", &RouterPipeline::vc_allocation_delay_cycles)
      .def_rw("switch_allocation_delay_cycles", &RouterPipeline::switch_allocation_delay_cycles)
      .def_rw("switch_traversal_delay_cycles", &RouterPipeline::switch_traversal_delay_cycles)
      .def_rw("credit_delay_cycles", &RouterPipeline::credit_delay_cycles);

  nb::class_<FatTreeDescription>(module, "FatTreeDescription")
      .def(nb::init<>())
      .def_rw("children", &FatTreeDescription::children)
      .def_rw("parents", &FatTreeDescription::parents)
      .def_rw("cables", &FatTreeDescription::cables);

  nb::class_<NetworkDescription> network(module, "NetworkDescription");
  network.def(nb::init<>())
      .def_rw("topology", &NetworkDescription::topology)
      .def_rw("engine", &NetworkDescription::engine)
      .def_rw("routing", &NetworkDescription::routing)
      .def_rw("dims", &NetworkDescription::dims)
      .def_rw("fat_tree", &NetworkDescription::fat_tree)
      .def_rw("nodes", &NetworkDescription::nodes)
      .def_rw("graph", &NetworkDescription::graph)
      .def_rw("table", &NetworkDescription::table)
      .def_rw("link_names", &NetworkDescription::link_names)
      .def_rw("links", &NetworkDescription::links)
      .def_rw("local_rate", &NetworkDescription::local_rate)
      .def_rw("virtual_channels", &NetworkDescription::virtual_channels)
      .def_rw("buffer_bytes", &NetworkDescription::buffer_bytes)
      .def_rw("injection_buffer_bytes", &NetworkDescription::injection_buffer_bytes)
      .def_rw("ejection_buffer_bytes", &NetworkDescription::ejection_buffer_bytes)
      .def_rw("switching", &NetworkDescription::switching)
      .def_rw("channel_selection", &NetworkDescription::channel_selection)
      .def_rw("pipeline", &NetworkDescription::pipeline);
  def_time(network, "local_latency_ps", &NetworkDescription::local_latency);
  def_time(network, "router_latency_ps", &NetworkDescription::router_latency);
  def_time(network, "credit_latency_ps", &NetworkDescription::credit_latency);
  network.def_rw("faults", &NetworkDescription::faults);
  def_time(network, "reconfiguration_ps", &NetworkDescription::reconfiguration);
}

void bind_host(nb::module_& module) {
  nb::class_<BusDescription> bus(module, "BusDescription");
  bus.def(nb::init<>())
      .def_rw("width_bytes", &BusDescription::width_bytes)
      .def_rw("full_duplex", &BusDescription::full_duplex)
      .def_rw("transaction_overhead_cycles", &BusDescription::transaction_overhead_cycles)
      .def_rw("max_burst_bytes", &BusDescription::max_burst_bytes)
      .def_rw("outstanding_reads", &BusDescription::outstanding_reads);
  def_clock(bus, &BusDescription::clock);
  def_time(bus, "read_latency_ps", &BusDescription::read_latency);
  def_time(bus, "pio_write_latency_ps", &BusDescription::pio_write_latency);

  nb::class_<HostDescription> host(module, "HostDescription");
  host.def(nb::init<>())
      .def_rw("bus", &HostDescription::bus)
      .def_rw("copy_bytes_per_second", &HostDescription::copy_bytes_per_second)
      .def_rw("gpu_copy_bytes_per_second", &HostDescription::gpu_copy_bytes_per_second)
      .def_rw("flops_per_second", &HostDescription::flops_per_second);
  def_time(host, "local_latency_ps", &HostDescription::local_latency);
  def_time(host, "gpu_copy_latency_ps", &HostDescription::gpu_copy_latency);
}

void bind_software(nb::module_& module) {
  nb::class_<SoftwareDescription> software(module, "SoftwareDescription");
  software.def(nb::init<>()).def_rw("eager_limit_bytes", &SoftwareDescription::eager_limit_bytes);
  def_time(software, "send_ps", &SoftwareDescription::send);
  def_time(software, "send_packet_ps", &SoftwareDescription::send_packet);
  def_time(software, "receive_packet_ps", &SoftwareDescription::receive_packet);
  def_time(software, "receive_ps", &SoftwareDescription::receive);
  def_time(software, "after_receive_ps", &SoftwareDescription::after_receive);
  def_time(software, "completion_ps", &SoftwareDescription::completion);
  def_time(software, "rendezvous_ps", &SoftwareDescription::rendezvous);
  def_time(software, "publish_ps", &SoftwareDescription::publish);
  def_time(software, "poll_ps", &SoftwareDescription::poll);
  def_time(software, "clock_read_ps", &SoftwareDescription::clock_read);
}

}  // namespace

void bind_machine(nb::module_& module) {
  const nb::object base = nb::module_::import_("apenet.base.errors").attr("PartitionError");
  nb::exception<NetworkPartitioned>(module, "NetworkPartitioned", base);
  bind_network(module);
  bind_host(module);
  bind_cards(module);
  bind_software(module);
  nb::class_<MachineDescription>(module, "MachineDescription")
      .def(nb::init<>())
      .def_rw("name", &MachineDescription::name)
      .def_rw("network", &MachineDescription::network)
      .def_rw("host", &MachineDescription::host)
      .def_rw("nic", &MachineDescription::nic)
      .def_rw("card_software", &MachineDescription::card_software)
      .def_rw("mpi_software", &MachineDescription::mpi_software)
      .def_rw("seed", &MachineDescription::seed);
  nb::class_<ArrangementFacts>(module, "ArrangementFacts")
      .def_ro("nodes", &ArrangementFacts::nodes)
      .def_ro("routers", &ArrangementFacts::routers)
      .def_ro("ports_per_router", &ArrangementFacts::ports_per_router)
      .def_ro("cables", &ArrangementFacts::cables)
      .def_ro("channel_classes", &ArrangementFacts::channel_classes)
      .def_ro("is_free_of_deadlock", &ArrangementFacts::is_free_of_deadlock)
      .def_ro("proof", &ArrangementFacts::proof);
  module.def("inspect_arrangement", &inspect_arrangement, nb::arg("network"),
             "Topology, routing and the deadlock check; raises ValueError when the network cannot be built.");
  module.def("count_network_nodes", &count_network_nodes, nb::arg("network"),
             "Nodes of a network; raises ValueError when it cannot be built.");
  module.def(
      "wire",
      [](const MachineDescription& description, std::vector<NodeId> node_of_process) {
        Simulation simulation(description.seed);
        const Machine machine(simulation, description, std::move(node_of_process));
        return machine.node_count();
      },
      nb::arg("description"), nb::arg("node_of_process"),
      "Wires the machine and drops it: raises ValueError when that cannot be done. Returns the number of "
      "nodes.");
}

}  // namespace apenet
