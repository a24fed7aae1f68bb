// The machines that C++ tests measure. Their numbers are those of machines/*.toml, where each one's source
// and class stands; here they are only repeated so that the tests need no Python.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/description.hpp"

namespace apenet::test {

inline constexpr std::int64_t mib = std::int64_t{1} << 20;

inline MachineDescription apelink_machine(std::vector<std::uint32_t> dims, std::int64_t link_hz,
                                          std::int64_t bus_hz) {
  MachineDescription machine;
  machine.network.topology = NetworkDescription::Topology::torus;
  machine.network.dims = std::move(dims);
  const LinkDescription link{{16, 3, link_hz}, Time::from_ns(70)};
  machine.network.links.assign(machine.network.dims.size(), link);
  machine.network.local_rate = {16, 1, 133'000'000};
  machine.network.router_latency = ClockDomain{link_hz}.cycles(10);
  machine.network.credit_latency = Time::from_ns(100);
  machine.network.virtual_channels = 2;
  machine.network.buffer_bytes = 4096;
  machine.network.injection_buffer_bytes = 4096;
  machine.network.ejection_buffer_bytes = 8192;

  machine.host.bus.clock = {bus_hz};
  machine.host.bus.width_bytes = 8;
  machine.host.bus.transaction_overhead_cycles = 16;
  machine.host.bus.max_burst_bytes = 256;
  machine.host.bus.read_latency = Time::from_ns(350);
  machine.host.bus.outstanding_reads = 4;
  machine.host.bus.pio_write_latency = Time::from_ns(200);
  machine.host.copy_bytes_per_second = 1000 * mib;
  machine.host.local_latency = Time::from_ns(500);
  machine.host.flops_per_second = 1'000'000'000;

  machine.nic = ApelinkDescription{};
  std::get<ApelinkDescription>(machine.nic).clock = {133'000'000};
  std::get<ApelinkDescription>(machine.nic).max_message_bytes = 4 * mib;
  std::get<ApelinkDescription>(machine.nic).descriptor_cycles = 12;
  std::get<ApelinkDescription>(machine.nic).descriptor_fifo_entries = 64;
  std::get<ApelinkDescription>(machine.nic).lookup_cycles = 8;
  std::get<ApelinkDescription>(machine.nic).get_service = Time::from_ns(4000);
  return machine;
}

inline MachineDescription apenet_2004() {
  MachineDescription machine = apelink_machine({4, 1, 1}, 100'000'000, 133'000'000);
  machine.name = "apenet-2004";
  for (LinkDescription& link : machine.network.links) link.latency = Time::from_ns(80);
  std::get<ApelinkDescription>(machine.nic).get_service = Time::from_ns(5000);
  machine.card_software.send = Time::from_ns(2000);
  machine.card_software.receive = Time::from_ns(3000);
  machine.card_software.after_receive = Time::from_ns(500);
  machine.card_software.completion = Time::from_ns(300);
  return machine;
}

inline MachineDescription ape16() {
  MachineDescription machine = apelink_machine({4, 2, 2}, 115'000'000, 100'000'000);
  machine.name = "ape16";
  machine.card_software.send = Time::from_ns(600);
  machine.card_software.receive = Time::from_ns(700);
  machine.card_software.after_receive = Time::from_ns(400);
  machine.card_software.completion = Time::from_ns(200);
  return machine;
}

inline MachineDescription ape128() {
  MachineDescription machine = apelink_machine({8, 4, 4}, 115'000'000, 133'000'000);
  machine.name = "ape128";
  machine.host.copy_bytes_per_second = 1300 * mib;
  machine.card_software = ape16().card_software;
  return machine;
}

// The links, switches and adapters of pax, on fewer nodes: switches of four below four others.
inline MachineDescription pax16() {
  MachineDescription machine;
  machine.name = "pax16";
  machine.network.topology = NetworkDescription::Topology::fat_tree;
  machine.network.routing = NetworkDescription::Routing::destination_mod;
  machine.network.fat_tree = {{4, 4}, {2}, {1}};
  machine.network.links = {{{16, 1, 250'000'000}, Time::from_ns(25)}};
  machine.network.local_rate = {16, 1, 250'000'000};
  machine.network.local_latency = Time::from_ns(10);
  machine.network.router_latency = Time::from_ns(140);
  machine.network.credit_latency = Time::from_ns(140);
  machine.network.virtual_channels = 8;
  machine.network.buffer_bytes = 8192;
  machine.network.injection_buffer_bytes = 8192;
  machine.network.ejection_buffer_bytes = 32768;

  machine.host.bus.clock = {250'000'000};
  machine.host.bus.width_bytes = 16;
  machine.host.bus.full_duplex = true;
  machine.host.bus.transaction_overhead_cycles = 2;
  machine.host.bus.max_burst_bytes = 128;
  machine.host.bus.read_latency = Time::from_ns(300);
  machine.host.bus.outstanding_reads = 32;
  machine.host.bus.pio_write_latency = Time::from_ns(150);
  machine.host.copy_bytes_per_second = 4000 * mib;
  machine.host.local_latency = Time::from_ns(300);
  machine.host.flops_per_second = 2'000'000'000;

  HcaDescription card;
  card.max_inline_bytes = 400;
  card.blueflame_bytes = 192;
  card.wqe_latency = Time::from_ns(100);
  card.wqe_interval = Time::from_ns(50);
  card.receive_latency = Time::from_ns(100);
  card.read_service = Time::from_ns(100);
  card.receive_repost = Time::from_ns(1000);
  card.rnr_timer = Time::from_ns(10'000);
  card.context_miss = Time::from_ns(500);
  machine.nic = card;
  machine.card_software.send = Time::from_ns(150);
  machine.card_software.receive = Time::from_ns(150);
  machine.card_software.after_receive = Time::from_ns(50);
  machine.card_software.completion = Time::from_ns(50);
  return machine;
}

inline MachineDescription apenetplus(std::int64_t link_hz, std::int64_t forward_cycles,
                                     std::int64_t port_bytes, std::int64_t bus_hz) {
  MachineDescription machine;
  machine.network.topology = NetworkDescription::Topology::torus;
  machine.network.dims = {4, 2, 2};
  machine.network.links.assign(3, {{16, 1, link_hz}, Time::from_ns(100)});
  machine.network.local_rate = {port_bytes, 1, 250'000'000};
  machine.network.router_latency = ClockDomain{link_hz}.cycles(forward_cycles);
  machine.network.credit_latency = machine.network.router_latency;
  machine.network.virtual_channels = 2;
  machine.network.buffer_bytes = 16'384;
  machine.network.injection_buffer_bytes = 32'768;
  machine.network.ejection_buffer_bytes = 32'768;

  machine.host.bus.clock = {bus_hz};
  machine.host.bus.width_bytes = 8;
  machine.host.bus.full_duplex = true;
  machine.host.bus.transaction_overhead_cycles = 3;
  machine.host.bus.max_burst_bytes = 256;
  machine.host.bus.read_latency = Time::from_ns(815);
  machine.host.bus.outstanding_reads = 16;
  machine.host.bus.pio_write_latency = Time::from_ns(200);
  machine.host.copy_bytes_per_second = 4000 * mib;
  machine.host.local_latency = Time::from_ns(400);
  machine.host.flops_per_second = 5'000'000'000;

  ApelinkPlusDescription card;
  card.clock = {250'000'000};
  card.header_bytes = 16;
  card.footer_bytes = 16;
  card.max_payload_bytes = 4096;
  card.max_message_bytes = 4 * mib;
  card.descriptor_cycles = 25;
  card.descriptor_fifo_entries = 128;
  card.ports = 8;
  card.get_service = Time::from_ns(3000);
  card.tlb_entries = 64;
  card.tlb_hit = Time::from_ns(124);
  card.page_walk = Time::from_ns(1900);
  card.receive_setup = Time::from_ns(668);
  card.max_send_bytes = 8192;
  card.gpu.read_latency = Time::from_ns(1500);
  card.gpu.read_rate = DataRate::bytes_per_second(1430 * mib);
  card.gpu.write_latency = Time::from_ns(300);
  card.gpu.write_rate = DataRate::bytes_per_second(2860 * mib);
  machine.nic = card;
  machine.card_software.send = Time::from_ns(1200);
  machine.card_software.receive = Time::from_ns(1200);
  machine.card_software.completion = Time::from_ns(200);
  return machine;
}

inline MachineDescription apenetplus_v4() {
  MachineDescription machine = apenetplus(212'500'000, 21, 16, 500'000'000);
  machine.name = "apenetplus-v4";
  return machine;
}

inline MachineDescription apenetplus_v5() {
  MachineDescription machine = apenetplus(342'424'242, 34, 32, 984'615'384);
  machine.name = "apenetplus-v5";
  const DataRate hsmc{16, 1, 303'030'303};
  machine.network.links[1].rate = hsmc;
  machine.network.links[2].rate = hsmc;
  machine.host.copy_bytes_per_second = 6000 * mib;
  machine.host.local_latency = Time::from_ns(300);
  auto& card = std::get<ApelinkPlusDescription>(machine.nic);
  card.tlb_entries = 128;
  card.receive_engines = 2;
  card.gpu.read_rate = DataRate::bytes_per_second(2900 * mib);
  card.gpu.write_rate = DataRate::bytes_per_second(5700 * mib);
  return machine;
}

inline MachineDescription extoll_64() {
  MachineDescription machine;
  machine.name = "extoll-64";
  machine.network.topology = NetworkDescription::Topology::mesh;
  machine.network.dims = {4, 4, 4};
  constexpr ClockDomain clock{156'000'000};
  machine.network.links.assign(3, {{4, 1, clock.frequency_hz}, Time::from_ns(120)});
  machine.network.local_rate = {4, 1, clock.frequency_hz};
  machine.network.router_latency = clock.cycles(12);
  machine.network.credit_latency = clock.cycles(24);
  machine.network.virtual_channels = 3;
  machine.network.buffer_bytes = 2048;
  machine.network.injection_buffer_bytes = 2048;
  machine.network.ejection_buffer_bytes = 4096;

  machine.host.bus.clock = {200'000'000};
  machine.host.bus.width_bytes = 8;
  machine.host.bus.full_duplex = true;
  machine.host.bus.transaction_overhead_cycles = 1;
  machine.host.bus.max_burst_bytes = 64;
  machine.host.bus.read_latency = Time::from_ns(250);
  machine.host.bus.outstanding_reads = 8;
  machine.host.bus.pio_write_latency = Time::from_ns(150);
  machine.host.copy_bytes_per_second = 1500 * mib;
  machine.host.local_latency = Time::from_ns(400);
  machine.host.flops_per_second = 1'000'000'000;

  ExtollDescription card;
  card.clock = clock;
  card.velo_max_message_bytes = 1064;
  card.velo_mailbox_entries = 256;
  card.velo_send_cycles = 8;
  card.velo_receive_cycles = 8;
  card.rma_max_message_bytes = 8 * mib;
  card.rma_max_payload_bytes = 256;
  card.rma_requester_cycles = 24;
  card.rma_responder_cycles = 24;
  card.rma_completer_cycles = 16;
  machine.nic = card;

  machine.card_software.send = Time::from_ns(100);
  machine.card_software.receive = Time::from_ns(300);
  machine.card_software.after_receive = Time::from_ns(50);
  machine.card_software.completion = Time::from_ns(50);
  machine.card_software.send_packet = Time::from_ns(50);
  machine.card_software.receive_packet = Time::from_ns(60);
  return machine;
}

inline MachineDescription qpace() {
  MachineDescription machine;
  machine.name = "qpace";
  machine.network.topology = NetworkDescription::Topology::torus;
  machine.network.dims = {8, 8, 4};
  const LinkDescription link{{4, 1, 250'000'000}, Time::from_ns(60)};
  machine.network.links.assign(machine.network.dims.size(), link);
  machine.network.local_rate = {32, 1, 250'000'000};
  machine.network.router_latency = Time::from_ns(20);
  machine.network.credit_latency = Time::from_ns(100);
  machine.network.virtual_channels = 32;
  machine.network.buffer_bytes = 2048;
  machine.network.injection_buffer_bytes = 2048;
  machine.network.ejection_buffer_bytes = 8192;
  machine.host.copy_bytes_per_second = 4000 * mib;
  machine.host.local_latency = Time::from_ns(500);
  machine.host.flops_per_second = 1'000'000'000;
  machine.nic = TnwDescription{.put_latency = Time::from_ns(830),
                               .notify_latency = Time::from_ns(830),
                               .operation = Time::from_ns(357),
                               .cpu_link_rate = DataRate::bytes_per_second(2'042'000'000),
                               .header_bytes = 8,
                               .message_header_bytes = 32,
                               .acknowledgement_bytes = 22,
                               .message_acknowledgement_bytes = 600,
                               .receive_buffer_packets = 16,
                               .ring_bytes = 8192,
                               .forward_service = Time::from_ns(3000)};
  machine.card_software.send = Time::from_ns(200);
  machine.card_software.receive = Time::from_ns(200);
  machine.card_software.after_receive = Time::from_ns(200);
  machine.card_software.completion = Time::from_ns(100);
  return machine;
}

inline MachineDescription ideal() {
  MachineDescription machine;
  machine.name = "ideal";
  machine.host.copy_bytes_per_second = 4000 * mib;
  machine.host.local_latency = Time::from_ns(300);
  machine.nic = IdealDescription::constant(Time::from_ns(1000), DataRate::bytes_per_second(1'000'000'000));
  return machine;
}

}  // namespace apenet::test
