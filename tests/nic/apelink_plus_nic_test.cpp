// The mechanisms of the APEnet+ card, against times calculated by hand (docs/models/apelink-plus.md).
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "network/topology/cube.hpp"
#include "nic/card_fixture.hpp"
#include "support/machines.hpp"

namespace apenet {
namespace {

// Clocks of 10 ns, one byte per nanosecond on the wire, and no latencies except those named. A put of 16
// bytes: doorbell 200, decode 120, request 3 clocks, read 300, first word after 3 + 1 clocks: 690 ns. With
// two routers and a link (250), the header reaches the target at 940.
constexpr std::int64_t header_in_ns = 200 + 120 + 30 + 300 + 40 + 250;
constexpr std::int64_t hit_ns = 10;
constexpr std::int64_t walk_ns = 500;
constexpr std::int64_t setup_ns = 40;
constexpr std::int64_t write_16_ns = 30 + 20;  // 3 + 2 clocks
constexpr std::int64_t event_ns = 30 + 20;
constexpr std::int64_t smallest_packet_ns = 48;  // from header to tail; no event is written before the tail
static_assert(smallest_packet_ns > setup_ns);

MachineDescription round_card() {
  MachineDescription machine = test::machine("apenetplus-v4");
  const DataRate byte_per_ns = DataRate::bytes_per_second(1'000'000'000);
  machine.network.topology = TorusDescription({2});
  machine.network.links = {{byte_per_ns, Time::from_ns(50)}};
  machine.network.local_rate = byte_per_ns;
  machine.network.router_latency = Time::from_ns(100);
  machine.network.credit_latency = Time::from_ns(10);
  machine.host.bus = {.clock = {100'000'000},
                      .width_bytes = 8,
                      .full_duplex = true,
                      .transaction_overhead_cycles = 3,
                      .max_burst_bytes = 256,
                      .read_latency = Time::from_ns(300),
                      .outstanding_reads = 4,
                      .pio_write_latency = Time::from_ns(200)};
  apelink_plus::Description& card = std::get<apelink_plus::Description>(machine.nic);
  card.clock = {100'000'000};
  card.descriptor_cycles = 12;
  card.max_payload_bytes = 256;
  card.tlb_entries = 4;
  card.tlb_hit = Time::from_ns(hit_ns);
  card.page_walk = Time::from_ns(walk_ns);
  card.receive_setup = Time::from_ns(setup_ns);
  card.gpu = {.read_latency = Time::from_ns(300),
              .read_rate = byte_per_ns,
              .write_latency = Time::from_ns(200),
              .write_rate = byte_per_ns};
  return machine;
}

class ApelinkPlusTest : public test::CardFixture {
 protected:
  MachineDescription description = round_card();
  apelink_plus::Description& card = std::get<apelink_plus::Description>(description.nic);

  void wire_pair() { wire(description, {0, 1}); }
  static Descriptor put(std::int64_t bytes, std::uint64_t address) {
    return {.verb = Verb::put, .source = 0, .target = 1, .bytes = bytes, .remote_address = address};
  }
  // Posts the puts one after another, far apart.
  void put_each(std::vector<Descriptor> puts) {
    for (std::uint64_t i = 0; i < puts.size(); ++i) {
      puts[i].message = i;
      machine->post(Time::from_ns(static_cast<std::int64_t>(i) * 1'000'000), puts[i]);
    }
    simulation.run();
  }
  // The time from the i-th post to its arrival.
  [[nodiscard]] Time took(std::size_t i) const {
    return recorder.of(CompletionKind::arrived).at(i).time -
           Time::from_ns(static_cast<std::int64_t>(i) * 1'000'000);
  }
  // The time that each packet adds to a long message.
  [[nodiscard]] Time per_packet(const MachineDescription& machine_description, Memory memory = Memory::host,
                                NodeId node_of_target = 1) const {
    constexpr std::int64_t packets = 20;
    std::vector<Time> times;
    for (const std::int64_t length : {packets, 2 * packets}) {
      Simulation own;
      Machine again(own, machine_description, {0, node_of_target});
      test::Recorder sink(own);
      again.set_sink(sink);
      Descriptor descriptor = put(length * 256, 0);
      descriptor.remote_memory = memory;
      again.post(Time::zero(), descriptor);
      own.run();
      times.push_back(sink.of(CompletionKind::arrived).at(0).time);
    }
    return Time::from_ps((times[1] - times[0]).ps() / packets);
  }
};

TEST_F(ApelinkPlusTest, AnUnknownPageCausesAWalkAndAKnownOneAHit) {
  wire_pair();
  put_each({put(16, 0), put(16, 100)});
  const std::int64_t behind = setup_ns + write_16_ns + event_ns;
  EXPECT_EQ(took(0), Time::from_ns(header_in_ns + walk_ns + behind));
  EXPECT_EQ(took(1), Time::from_ns(header_in_ns + hit_ns + behind));
  EXPECT_EQ(counter("page_walks"), 1U);
  EXPECT_EQ(counter("tlb_hits"), 1U);
}

TEST_F(ApelinkPlusTest, WithoutTlbEveryPageCausesAWalk) {
  card.tlb_entries = 0;
  wire_pair();
  put_each({put(16, 0), put(16, 0)});
  EXPECT_EQ(took(1), Time::from_ns(header_in_ns + walk_ns + setup_ns + write_16_ns + event_ns));
  EXPECT_EQ(counter("page_walks"), 2U);
}

TEST_F(ApelinkPlusTest, AMessageWithoutPayloadNeedsNoTranslation) {
  wire_pair();
  put_each({put(0, 0)});
  // Neither request nor read: decoded at 320; the header reaches the target 250 later.
  EXPECT_EQ(took(0), Time::from_ns(200 + 120 + 250 + smallest_packet_ns + event_ns));
  EXPECT_EQ(counter("page_walks"), 0U);
}

TEST_F(ApelinkPlusTest, APacketAcrossAPageBoundaryTouchesBothPages) {
  wire_pair();
  put_each({put(256, 4096 - 100)});
  EXPECT_EQ(counter("page_walks"), 2U);
}

TEST_F(ApelinkPlusTest, RepeatedUseOfABufferHitsAndASweepBeyondTheTlbMisses) {
  wire_pair();
  put_each({put(4 * 4096, 0), put(4 * 4096, 0)});
  EXPECT_EQ(counter("page_walks"), 4U) << "sixteen packets per page, of which the first causes a walk";
  EXPECT_EQ(counter("tlb_hits"), 2U * 64U - 4U);
}

TEST_F(ApelinkPlusTest, ASweepOverOnePageMoreThanTheTlbHoldsAlwaysMisses) {
  wire_pair();
  put_each({put(5 * 4096, 0), put(5 * 4096, 0)});
  EXPECT_EQ(counter("page_walks"), 10U) << "the least recently used page is always the next one needed";
}

TEST_F(ApelinkPlusTest, ProcessesHaveTheirOwnAddresses) {
  wire(description, {0, 1, 1});
  Descriptor to_other = put(16, 0);
  to_other.target = 2;
  put_each({put(16, 0), to_other, put(16, 0)});
  EXPECT_EQ(counter("page_walks"), 2U);
}

TEST_F(ApelinkPlusTest, SendsLandOneAfterAnotherInARing) {
  card.receive_ring_bytes = 2 * 4096;
  wire_pair();
  Descriptor send = put(1024, 0);
  send.verb = Verb::send;
  put_each(std::vector<Descriptor>(12, send));
  EXPECT_EQ(counter("page_walks"), 2U) << "pages 0, 1, and 0 again";
  EXPECT_EQ(counter("tlb_hits"), 12U * 4U - 2U);
}

TEST_F(ApelinkPlusTest, TxDoneIsWrittenWhenThePayloadHasBeenRead) {
  wire_pair();
  Descriptor descriptor = put(16, 0);
  descriptor.want_local = true;
  put_each({descriptor});
  // The completion of the read ends 3 + 2 clocks after it began.
  EXPECT_EQ(recorder.of(CompletionKind::sent).at(0).time,
            Time::from_ns(200 + 120 + 30 + 300 + 50 + event_ns));
}

// 256 bytes: 3 + 32 clocks on the bus, 288 ns on the link. Reads deliver one packet every 350 ns.
TEST_F(ApelinkPlusTest, OneEngineIsSetUpAndWritesInTurn) {
  EXPECT_EQ(per_packet(description), Time::from_ns(350 + setup_ns));
}

TEST_F(ApelinkPlusTest, TwoEnginesOverlapUntilTheBusIsTheLimit) {
  card.receive_setup = Time::from_ns(400);
  EXPECT_EQ(per_packet(description), Time::from_ns(750));
  card.receive_engines = 2;
  EXPECT_EQ(per_packet(description), Time::from_ns(375));
  card.receive_engines = 3;
  EXPECT_EQ(per_packet(description), Time::from_ns(350));
}

TEST_F(ApelinkPlusTest, TranslationGoesOnWhileAnEngineWrites) {
  card.tlb_entries = 0;
  card.page_walk = Time::from_ns(390);
  EXPECT_EQ(per_packet(description), Time::from_ns(390));
  card.page_walk = Time::from_ns(1900);
  EXPECT_EQ(per_packet(description), Time::from_ns(1900)) << "one page at a time";
  card.receive_engines = 2;
  EXPECT_EQ(per_packet(description), Time::from_ns(1900)) << "for all engines";
}

TEST_F(ApelinkPlusTest, TheGpuPushesItsPayload) {
  wire_pair();
  Descriptor descriptor = put(16, 0);
  descriptor.local_memory = Memory::gpu;
  put_each({descriptor});
  // Requested at 320; the GPU answers 300 later, its 16 bytes take 16 ns, and the first word 3 + 1 clocks.
  EXPECT_EQ(took(0), Time::from_ns(320 + 300 + 16 + 40 + 250 + walk_ns + setup_ns + write_16_ns + event_ns));
  EXPECT_EQ(machine->warnings().size(), 1U);
}

TEST_F(ApelinkPlusTest, TheEventWaitsUntilTheGpuShowsTheData) {
  wire_pair();
  Descriptor descriptor = put(16, 0);
  descriptor.remote_memory = Memory::gpu;
  put_each({descriptor});
  EXPECT_EQ(took(0), Time::from_ns(header_in_ns + walk_ns + setup_ns + write_16_ns + 200 + event_ns));
}

TEST_F(ApelinkPlusTest, AnEventDoesNotOvertakeGpuWritesThatAreNotVisibleYet) {
  card.gpu.write_latency = Time::from_ns(100'000);
  wire_pair();
  Descriptor silent = put(16, 0);
  silent.remote_memory = Memory::gpu;
  silent.notify_target = false;
  Descriptor reported = put(16, 0);
  reported.message = 1;
  machine->post(Time::zero(), silent);
  machine->post(Time::zero(), reported);
  simulation.run();
  EXPECT_LE(recorder.landed.at({0, 0}), recorder.of(CompletionKind::arrived).at(0).time);
}

TEST_F(ApelinkPlusTest, ASlowGpuHoldsItsEngine) {
  card.gpu.write_rate = DataRate::bytes_per_second(250'000'000);
  EXPECT_EQ(per_packet(description, Memory::gpu), Time::from_ns(1024 + setup_ns));
}

TEST_F(ApelinkPlusTest, WithoutRatesThereIsNoGpu) {
  card.gpu = {};
  wire_pair();
  Descriptor descriptor = put(16, 0);
  descriptor.remote_memory = Memory::gpu;
  EXPECT_THROW(machine->post(Time::zero(), descriptor), std::invalid_argument);
}

TEST_F(ApelinkPlusTest, AGetIsServedByTheDriverAndLandsAtItsAddress) {
  wire_pair();
  put_each({{.verb = Verb::get, .source = 0, .target = 1, .bytes = 16, .local_address = 1 << 20}});
  // The request is a packet of its own and causes an event at the target.
  const std::int64_t asked_ns = 200 + 120 + 250 + smallest_packet_ns + event_ns;
  const std::int64_t reply_ns = header_in_ns + walk_ns + setup_ns + write_16_ns + event_ns;
  EXPECT_EQ(recorder.of(CompletionKind::got).at(0).time, Time::from_ns(asked_ns + 3000 + reply_ns));
  EXPECT_EQ(counter("gets_served"), 1U);
  EXPECT_EQ(counter("page_walks"), 1U);
}

// As between nodes, without the second router (100) and the link (50).
TEST_F(ApelinkPlusTest, AMessageToTheSameNodeGoesThroughItsCardIfTheFileSaysSo) {
  description.same_node.way = SameNodeDescription::Way::card;
  wire(description, {0, 0});
  put_each({put(16, 0), put(16, 100)});
  const std::int64_t behind = setup_ns + write_16_ns + event_ns;
  EXPECT_EQ(took(0), Time::from_ns(header_in_ns - 150 + walk_ns + behind));
  EXPECT_EQ(took(1), Time::from_ns(header_in_ns - 150 + hit_ns + behind));
  EXPECT_EQ(machine->link_crossings(), 0U);
}

// On a half-duplex bus each packet is read and written in turn, 350 ns each. Between nodes there are two
// buses.
TEST_F(ApelinkPlusTest, AStreamToTheSameNodeSharesTheBusWithItself) {
  description.same_node.way = SameNodeDescription::Way::card;
  description.host.bus.full_duplex = false;
  EXPECT_EQ(per_packet(description), Time::from_ns(350 + setup_ns));
  EXPECT_EQ(per_packet(description, Memory::host, 0), Time::from_ns(350 + 350));
}

}  // namespace
}  // namespace apenet
