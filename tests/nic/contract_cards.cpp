#include "nic/contract_cards.hpp"

#include "network/topology/cube.hpp"
#include "nic/fabric.hpp"
#include "support/cases.hpp"
#include "support/machines.hpp"

namespace apenet::test {

namespace {

MachineDescription ideal_of_16() {
  MachineDescription machine = round_ideal();
  machine.network.topology = NoTopologyDescription({4, 2, 2});
  return machine;
}

// Two paths and three protocols of decreasing latency, so that messages could overtake each other.
MachineDescription fabric_of_16() {
  MachineDescription machine = ideal_of_16();
  const auto paths = [](std::int64_t latency_ns) {
    const DataRate rate = DataRate::bytes_per_second(1'000'000'000);
    const DataRate half = DataRate::bytes_per_second(500'000'000);
    return std::vector<ideal::Path>{
        {.latency = Time::from_ns(latency_ns), .gap = Time::from_ns(50), .rate = rate, .transit = half},
        {.latency = Time::from_ns(10), .gap = {}, .rate = half, .transit = {}}};
  };
  machine.nic = fabric_of({{.max_message_bytes = 64, .paths = paths(3000)},
                           {.max_message_bytes = 512, .paths = paths(900)},
                           {.paths = paths(100)}});
  return machine;
}

// Scarce resources: one outstanding read, two descriptors per queue, buffers for little more than a packet.
MachineDescription narrow_ape16() {
  MachineDescription machine = test::machine("ape16");
  machine.network.buffer_bytes = 300;
  machine.network.injection_buffer_bytes = 300;
  machine.network.ejection_buffer_bytes = 300;
  machine.host.bus.outstanding_reads = 1;
  machine.host.bus.max_burst_bytes = 64;
  std::get<apelink::Description>(machine.nic).descriptor_fifo_entries = 2;
  std::get<apelink::Description>(machine.nic).max_pio_bytes = 2048;
  return machine;
}

MachineDescription pio_ape128() {
  MachineDescription machine = test::machine("ape128");
  machine.network.topology = TorusDescription({4, 2, 2});
  std::get<apelink::Description>(machine.nic).max_pio_bytes = 128;
  return machine;
}

// One read request at a time, and credits for one write.
void make_narrow(BusDescription& bus) {
  bus.outstanding_reads = 1;
  bus.max_burst_bytes = 128;
  bus.read_request_bytes = 128;
  bus.completion_bytes = 64;
  bus.packets_per_update = 1;
  bus.posted_credit_bytes = 128;
  bus.credit_return = Time::from_ns(200);
}

// Scarce resources: small buffers, one of each operation in progress, and hardly ever a receive buffer.
MachineDescription narrow_hca() {
  MachineDescription machine = pax16();
  machine.network.buffer_bytes = 320;
  machine.network.injection_buffer_bytes = 320;
  machine.network.ejection_buffer_bytes = 320;
  make_narrow(machine.host.bus);
  hca::Description& card = std::get<hca::Description>(machine.nic);
  card.mtu_bytes = 256;
  card.max_inline_bytes = 2048;
  card.blueflame_bytes = 16;
  card.is_blueflame_for_all = true;
  card.send_queue_entries = 2;
  card.wqe_prefetch_entries = 1;
  card.messages_per_ack = 2;
  card.outstanding_rdma_reads = 1;
  card.receive_queue_entries = 2;
  card.context_cache_entries = 2;
  return machine;
}

// As narrow_ape16(), with two engines and a tiny TLB.
MachineDescription narrow_apenetplus() {
  MachineDescription machine = test::machine("apenetplus-v5");
  machine.network.buffer_bytes = 300;
  machine.network.injection_buffer_bytes = 300;
  machine.network.ejection_buffer_bytes = 300;
  make_narrow(machine.host.bus);
  auto& card = std::get<apelink_plus::Description>(machine.nic);
  card.max_payload_bytes = 256;
  card.descriptor_fifo_entries = 2;
  card.max_pio_bytes = 2048;
  card.tlb_entries = 1;
  card.page_bytes = 64;
  card.receive_ring_bytes = 128;
  return machine;
}

MachineDescription extoll_of_16() {
  MachineDescription machine = test::machine("extoll-64");
  machine.network.topology = MeshDescription({4, 2, 2});
  return machine;
}

// One outstanding read, buffers of hardly a packet, three slots per mailbox.
MachineDescription narrow_extoll() {
  MachineDescription machine = extoll_of_16();
  machine.network.buffer_bytes = 300;
  machine.network.injection_buffer_bytes = 300;
  machine.network.ejection_buffer_bytes = 300;
  machine.host.bus.outstanding_reads = 1;
  std::get<extoll::Description>(machine.nic).velo_mailbox_entries = 3;
  return machine;
}

MachineDescription qpace_of_16() {
  MachineDescription machine = test::machine("qpace");
  machine.network.topology = TorusDescription({4, 2, 2});
  return machine;
}

// Only the nearest nodes are neighbours, and the receiver buffers a single packet of each channel.
MachineDescription narrow_qpace() {
  MachineDescription machine = test::machine("qpace");
  machine.network.topology = TorusDescription({16, 1, 1});
  machine.network.buffer_bytes = 200;
  machine.network.injection_buffer_bytes = 200;
  machine.network.ejection_buffer_bytes = 200;
  std::get<tnw::Description>(machine.nic).channels = 1;
  std::get<tnw::Description>(machine.nic).receive_buffer_packets = 1;
  return machine;
}

MachineDescription loop_back(MachineDescription machine) {
  machine.same_node.way = SameNodeDescription::Way::card;
  return machine;
}

MachineDescription by_flits(MachineDescription machine) {
  machine.network.engine = NetworkDescription::Engine::flit;
  return machine;
}

}  // namespace

std::vector<ContractCard> contract_cards() {
  return {{"ideal", ideal_of_16},
          {"fabric", fabric_of_16},
          {"apelink", [] { return test::machine("ape16"); }},
          {"apelink_pio", pio_ape128},
          {"apelink_narrow", narrow_ape16},
          {"apenetplus_v4", [] { return test::machine("apenetplus-v4"); }},
          {"apenetplus_v5", [] { return test::machine("apenetplus-v5"); }},
          {"apenetplus_narrow", narrow_apenetplus},
          {"extoll", extoll_of_16},
          {"extoll_narrow", narrow_extoll},
          {"hca", test::pax16, true},
          {"hca_narrow", narrow_hca, true},
          {"tnw", qpace_of_16},
          {"tnw_narrow", narrow_qpace}};
}

// By flits, many senders take long; `make test-whole` runs them.
std::vector<ContractCard> loop_back_cards() {
  std::vector<ContractCard> cards = {
      {"apelink", [] { return loop_back(test::machine("ape16")); }},
      {"apelink_narrow", [] { return loop_back(narrow_ape16()); }},
      {"apenetplus_v4", [] { return loop_back(test::machine("apenetplus-v4")); }},
      {"apenetplus_narrow", [] { return loop_back(narrow_apenetplus()); }},
      {"extoll", [] { return loop_back(extoll_of_16()); }},
      {"extoll_narrow", [] { return loop_back(narrow_extoll()); }}};
  if (!runs_all_cases()) return cards;
  cards.push_back({"apenetplus_narrow_flit", [] { return by_flits(loop_back(narrow_apenetplus())); }});
  cards.push_back({"extoll_narrow_flit", [] { return by_flits(loop_back(narrow_extoll())); }});
  return cards;
}

}  // namespace apenet::test
