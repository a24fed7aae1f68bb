// The mechanisms of the APELink card, against times calculated by hand (docs/models/apelink.md).
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "network/topology/cube.hpp"
#include "nic/card_fixture.hpp"
#include "support/machines.hpp"

namespace apenet {
namespace {

using ApelinkTest = test::CardFixture;

// Clocks of 10 ns, one byte per nanosecond on the wire, and no latencies except those named.
MachineDescription round_apelink() {
  MachineDescription machine = test::machine("ape16");
  const DataRate byte_per_ns = DataRate::bytes_per_second(1'000'000'000);
  machine.network.topology = TorusDescription({2});
  machine.network.links = {{byte_per_ns, Time::from_ns(50)}};
  machine.network.local_rate = byte_per_ns;
  machine.network.router_latency = Time::from_ns(100);
  machine.host.bus.clock = {100'000'000};
  machine.host.bus.transaction_overhead_cycles = 10;
  machine.host.bus.read_latency = Time::from_ns(300);
  machine.host.bus.pio_write_latency = Time::from_ns(200);
  std::get<apelink::Description>(machine.nic).clock = {100'000'000};
  std::get<apelink::Description>(machine.nic).descriptor_cycles = 12;
  std::get<apelink::Description>(machine.nic).lookup_cycles = 8;
  std::get<apelink::Description>(machine.nic).completion_bytes = 16;
  std::get<apelink::Description>(machine.nic).max_pio_bytes = 16;
  return machine;
}

TEST_F(ApelinkTest, ASmallMessageTakesTheSumOfItsSteps) {
  wire(round_apelink(), {0, 1});
  // Doorbell 200, decode 120, read 300 + 11 clocks to the first word. The header then crosses two routers and
  // a link (100 + 50 + 100), and the 32 bytes of the packet follow in 32 ns. After the header's look-up (80)
  // come the write of 10 + 2 clocks and the event, also 10 + 2 clocks.
  const Time header_in = Time::from_ns(200 + 120 + 300 + 110 + 100 + 50 + 100);
  EXPECT_EQ(arrival(16), header_in + Time::from_ns(80 + 120 + 120));
}

TEST_F(ApelinkTest, AMessageWithoutPayloadNeedsNeitherReadNorWrite) {
  wire(round_apelink(), {0, 1});
  const Time header_in = Time::from_ns(200 + 120 + 100 + 50 + 100);
  EXPECT_EQ(arrival(0), header_in + Time::from_ns(80 + 120));
}

TEST_F(ApelinkTest, APayloadFromTheCpuNeedsNoRead) {
  wire(round_apelink(), {0, 1});
  machine->post(Time::zero(), {.source = 0, .target = 1, .from_cpu = true, .bytes = 16});
  simulation.run();
  // The 32 bytes of descriptor and 16 of payload cross the bus within the doorbell's latency.
  const Time header_in = Time::from_ns(200 + 120 + 100 + 50 + 100);
  EXPECT_EQ(recorder.of(CompletionKind::arrived).at(0).time, header_in + Time::from_ns(80 + 120 + 120));
}

TEST_F(ApelinkTest, LargerPacketsAreCutThroughEverywhere) {
  wire(round_apelink(), {0, 1});
  // The write begins after the header's look-up and ends no earlier than the tail's arrival: 42 clocks of
  // write against 272 ns of packet.
  const Time header_in = Time::from_ns(200 + 120 + 300 + 110 + 100 + 50 + 100);
  EXPECT_EQ(arrival(256), header_in + Time::from_ns(80 + 420 + 120));
}

TEST_F(ApelinkTest, APutIsAcknowledgedByAPacketOfTheTargetsCard) {
  wire(round_apelink(), {0, 1});
  machine->post(Time::zero(), {.verb = Verb::put,
                               .source = 0,
                               .target = 1,
                               .want_remote = true,
                               .notify_target = false,
                               .bytes = 16});
  simulation.run();
  const Time landed = Time::from_ns(200 + 120 + 300 + 110 + 250 + 80 + 120);
  EXPECT_EQ(recorder.landed.begin()->second, landed);
  ASSERT_EQ(recorder.records.size(), 1U);
  EXPECT_EQ(recorder.of(CompletionKind::remote_done).at(0).time, landed + Time::from_ns(250 + 80 + 120));
  EXPECT_EQ(counter("acknowledgements"), 1U);
  EXPECT_EQ(counter("packets"), 2U);
  EXPECT_EQ(machine->warnings().size(), 1U);
}

TEST_F(ApelinkTest, AGetIsServedByTheDriverOfTheTarget) {
  wire(round_apelink(), {0, 1});
  machine->post(Time::zero(), {.verb = Verb::get, .source = 0, .target = 1, .bytes = 16});
  simulation.run();
  const Time asked = Time::from_ns(200 + 120 + 250 + 80 + 120);
  const Time posted = asked + Time::from_ns(4000);
  EXPECT_EQ(recorder.of(CompletionKind::got).at(0).time,
            posted + Time::from_ns(200 + 120 + 300 + 110 + 250 + 80 + 120 + 120));
  EXPECT_EQ(counter("gets_served"), 1U);
}

TEST_F(ApelinkTest, OneDriverServesANodesGetsOneAfterAnother) {
  wire(round_apelink(), {0, 1});
  for (std::uint64_t message = 0; message < 10; ++message) {
    machine->post(Time::zero(), {.verb = Verb::get, .source = 0, .target = 1, .message = message});
  }
  simulation.run();
  const std::vector<Completion> got = recorder.of(CompletionKind::got);
  ASSERT_EQ(got.size(), 10U);
  EXPECT_EQ(got[9].time - got[8].time, Time::from_ns(4000));
}

TEST_F(ApelinkTest, PacketsAreCountedByPayloadAndGranule) {
  wire(round_apelink(), {0, 1});
  std::ignore = arrival(1000);
  EXPECT_EQ(counter("packets"), 4U);
  const std::vector<LinkUse> links = machine->link_use();
  std::uint64_t wire_bytes = 0;
  for (const LinkUse& link : links) wire_bytes += link.wire_bytes;
  EXPECT_EQ(wire_bytes, 3U * 272U + (240U + 16U)) << "232 bytes are padded to 15 granules";
}

TEST_F(ApelinkTest, DescriptorsBeyondTheFifoWaitInHostMemoryAndKeepTheirOrder) {
  MachineDescription description = round_apelink();
  std::get<apelink::Description>(description.nic).descriptor_fifo_entries = 3;
  wire(description, {0, 1});
  for (std::uint64_t message = 0; message < 50; ++message) {
    machine->post(Time::zero(), {.source = 0, .target = 1, .bytes = 64, .message = message});
  }
  simulation.run();
  EXPECT_EQ(counter("descriptors_held_back"), 47U);
  const std::vector<Completion> arrived = recorder.of(CompletionKind::arrived);
  ASSERT_EQ(arrived.size(), 50U);
  for (std::uint64_t message = 0; message < 50; ++message) EXPECT_EQ(arrived[message].message, message);
}

TEST_F(ApelinkTest, QueuesTakeTurnsPacketByPacket) {
  wire(round_apelink(), {0, 1});
  machine->post(Time::zero(), {.source = 0, .target = 1, .channel = 0, .bytes = 100'000, .message = 0});
  machine->post(Time::from_ns(20'000), {.source = 0, .target = 1, .channel = 1, .bytes = 1000, .message = 1});
  simulation.run();
  EXPECT_EQ(recorder.of(CompletionKind::arrived).at(0).message, 1U)
      << "the short message does not wait for the long one";
}

}  // namespace
}  // namespace apenet
