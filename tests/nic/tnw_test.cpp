// The mechanisms of the TNW, against times calculated by hand (docs/models/tnw.md).
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "network/topology/crossbar.hpp"
#include "network/topology/cube.hpp"
#include "nic/card_fixture.hpp"
#include "nic/tnw/next_hops.hpp"
#include "support/machines.hpp"

namespace apenet {
namespace {

// A CPU link and a torus link each move one byte per nanosecond. A put and a delivery of one packet each
// occupy the CPU links for 100 + 128 ns, a credit for 60 ns. A first packet has 128 + 8 + 16 bytes on the
// link and arrives 10 + 152 + 50 + 10 ns after it has left the CPU links.
MachineDescription round_tnw() {
  MachineDescription machine = test::machine("qpace");
  machine.network.topology = TorusDescription({4});
  machine.network.links = {{DataRate::bytes_per_second(1'000'000'000), Time::from_ns(50)}};
  machine.network.router_latency = Time::from_ns(10);
  machine.nic = tnw::Description{.put_latency = Time::from_ns(200),
                                 .notify_latency = Time::from_ns(300),
                                 .operation = Time::from_ns(100),
                                 .credit = Time::from_ns(60),
                                 .cpu_link_rate = DataRate::bytes_per_second(1'000'000'000),
                                 .packet_bytes = 128,
                                 .header_bytes = 8,
                                 .control_bytes = 16,
                                 .max_message_bytes = 2048,
                                 .channels = 8,
                                 .ports = 8,
                                 .receive_buffer_packets = 16,
                                 .ring_bytes = 8192,
                                 .forward_service = Time::from_ns(1000)};
  return machine;
}

class TnwTest : public test::CardFixture {
 protected:
  void wire(const MachineDescription& description, std::vector<NodeId> nodes = {0, 1, 2}) {
    CardFixture::wire(description, std::move(nodes));
  }
  void credit(Time when, ProcessId receiver, ProcessId sender, std::int64_t bytes) {
    machine->post(when, {.verb = Verb::credit, .source = receiver, .target = sender, .bytes = bytes});
  }
};

TEST_F(TnwTest, OnePacketToANeighbour) {
  wire(round_tnw());
  credit(Time::zero(), 1, 0, 100);
  machine->post(Time::zero(),
                {.source = 0, .target = 1, .want_local = true, .want_remote = true, .bytes = 100});
  simulation.run();
  // The put takes 200 + 228; the processor is notified 300 later.
  EXPECT_EQ(recorder.of(CompletionKind::sent).at(0).time, Time::from_ns(428 + 300));
  // At the neighbour's card 222 later, and out of its buffer after another 228.
  EXPECT_EQ(recorder.of(CompletionKind::arrived).at(0).time, Time::from_ns(428 + 222 + 228 + 300));
  // Its acknowledgement is sent then: 10 + 16 + 50 + 10.
  EXPECT_EQ(recorder.of(CompletionKind::remote_done).at(0).time, Time::from_ns(878 + 86 + 300));
}

// The second packet leaves the CPU links at 556 and follows the first on the link: 438 + 152 + 136 + 50 + 10.
// The first leaves the buffer before, at 650 + 128: the delivery's operation belongs to the last packet.
TEST_F(TnwTest, PacketsOfAMessageFollowEachOther) {
  wire(round_tnw());
  credit(Time::zero(), 1, 0, 256);
  machine->post(Time::zero(), {.source = 0, .target = 1, .bytes = 256});
  simulation.run();
  EXPECT_EQ(recorder.of(CompletionKind::arrived).at(0).time, Time::from_ns(786 + 228 + 300));
  EXPECT_EQ(counter("packets"), 2U);
  EXPECT_EQ(counter("acknowledgements"), 2U);
}

TEST_F(TnwTest, DataWithoutCreditWaitsInTheCard) {
  wire(round_tnw());
  machine->post(Time::zero(), {.source = 0, .target = 1, .bytes = 100});
  credit(Time::from_ns(5000), 1, 0, 99);
  credit(Time::from_ns(7000), 1, 0, 1);
  simulation.run();
  // The second credit completes the amount: 7000 + 200 + 60, then the delivery.
  EXPECT_EQ(recorder.of(CompletionKind::arrived).at(0).time, Time::from_ns(7260 + 228 + 300));
  EXPECT_GE(counter("waits_for_credit"), 1U);
}

TEST_F(TnwTest, AFullReceiveBufferHoldsTheSenderBack) {
  MachineDescription description = round_tnw();
  std::get<tnw::Description>(description.nic).receive_buffer_packets = 2;
  wire(description);
  machine->post(Time::zero(), {.source = 0, .target = 1, .bytes = 5 * 128, .message = 0});
  // Another virtual channel is not held back.
  machine->post(Time::zero(), {.source = 0, .target = 1, .channel = 1, .bytes = 10, .message = 1});
  machine->post(Time::zero(), {.verb = Verb::credit, .source = 1, .target = 0, .channel = 1, .bytes = 10});
  simulation.run();
  EXPECT_EQ(counter("packets"), 3U);
  ASSERT_EQ(recorder.of(CompletionKind::arrived).size(), 1U);
  EXPECT_EQ(recorder.of(CompletionKind::arrived)[0].message, 1U);
  credit(simulation.now(), 1, 0, 5 * 128);
  simulation.run();
  EXPECT_EQ(counter("packets"), 6U);
  EXPECT_EQ(recorder.of(CompletionKind::arrived).size(), 2U);
}

// The first packet leaves the buffer at 650 + 128, and its acknowledgement arrives 86 later. Then the second
// one crosses the CPU links and the link: 128, and 10 + 136 + 50 + 10.
TEST_F(TnwTest, AnAcknowledgementFreesAPlaceInTheBuffer) {
  MachineDescription description = round_tnw();
  std::get<tnw::Description>(description.nic).receive_buffer_packets = 1;
  wire(description);
  credit(Time::zero(), 1, 0, 256);
  machine->post(Time::zero(), {.source = 0, .target = 1, .bytes = 256});
  simulation.run();
  EXPECT_EQ(recorder.of(CompletionKind::arrived).at(0).time, Time::from_ns(778 + 86 + 128 + 206 + 228 + 300));
}

// Puts, credits and deliveries of a node share its CPU links. The packet that arrives at 650 does not wait
// for all of 200 + 20 x 60, because both directions take turns. Credits take as long for any size.
TEST_F(TnwTest, TheProcessorPathIsSerial) {
  wire(round_tnw());
  machine->post(Time::zero(), {.source = 0, .target = 1, .bytes = 100});
  for (int i = 0; i < 20; ++i) credit(Time::zero(), 1, 0, i % 2 == 0 ? 100 : 2048);
  simulation.run();
  // Credits end at 260, 320 ... 680. The packet arrives at 650 and gets its turn at 680.
  EXPECT_EQ(recorder.of(CompletionKind::arrived).at(0).time, Time::from_ns(680 + 228 + 300));
  EXPECT_EQ(simulation.now(), Time::from_ns(200 + 20 * 60 + 228));
}

// The message passes through memory and software of nodes 1 and 2.
TEST_F(TnwTest, AStrangerIsReachedBySoftware) {
  wire(round_tnw());
  credit(Time::zero(), 2, 0, 100);
  machine->post(Time::zero(), {.source = 0, .target = 2, .want_remote = true, .bytes = 100});
  simulation.run();
  const Time at_first_node = Time::from_ns(1178 + 1000);
  const Time at_second_node = at_first_node + Time::from_ns(228 + 222 + 228 + 300 + 1000);
  EXPECT_EQ(recorder.of(CompletionKind::arrived).at(0).time, at_second_node);
  // The confirmation returns by software on the same way.
  EXPECT_EQ(recorder.of(CompletionKind::remote_done).at(0).time, at_second_node + Time::from_ns(2 * 1978));
  EXPECT_EQ(counter("messages_to_strangers"), 1U);
  EXPECT_EQ(counter("forwards"), 2U);
  ASSERT_EQ(machine->warnings().size(), 2U);
  EXPECT_NE(machine->warnings()[0].find("not neighbours"), std::string::npos);
}

// A message that waits for credit does not block one that is only forwarded.
TEST_F(TnwTest, ForwardedMessagesPassWaitingOnes) {
  MachineDescription description = round_tnw();
  std::get<tnw::Description>(description.nic).receive_buffer_packets = 1;
  wire(description);
  machine->post(Time::zero(), {.source = 0, .target = 1, .bytes = 2048, .message = 0});
  machine->post(Time::zero(), {.source = 0, .target = 2, .bytes = 2048, .message = 1});
  credit(Time::zero(), 2, 0, 2048);
  simulation.run();
  ASSERT_EQ(recorder.of(CompletionKind::arrived).size(), 1U);
  EXPECT_EQ(recorder.of(CompletionKind::arrived)[0].message, 1U);
}

TEST_F(TnwTest, RingsAreFilledBeforeTheRun) {
  wire(round_tnw());
  machine->fill_receive_rings();
  const std::uint16_t ring = machine->capabilities().ring_channel;
  for (std::uint64_t message = 0; message < 5; ++message) {
    machine->post(Time::zero(),
                  {.source = 0, .target = 1, .channel = ring, .bytes = 2048, .message = message});
  }
  // The card's own channels have no credit before a program gives it.
  machine->post(Time::zero(), {.source = 0, .target = 1, .channel = 1, .bytes = 2048, .message = 5});
  simulation.run();
  EXPECT_EQ(recorder.of(CompletionKind::arrived).size(), 4U);  // uses up 8192 bytes of credit
}

TEST(TnwNextHops, NeighboursAndTheWayToStrangers) {
  const tnw::NextHops torus(TorusDescription({4, 2, 1}), 6);
  EXPECT_EQ(torus.neighbours(0), (std::vector<NodeId>{1, 3, 4}));
  EXPECT_EQ(torus.next_hop(0, 7), 3U);  // one step down in x, then y
  EXPECT_EQ(torus.next_hop(3, 7), 7U);
  EXPECT_EQ(torus.next_hop(0, 2), 1U);  // up, as both directions are equal
  const tnw::NextHops mesh(MeshDescription({4, 2, 1}), 6);
  EXPECT_EQ(mesh.neighbours(0), (std::vector<NodeId>{1, 4}));
  EXPECT_EQ(mesh.next_hop(0, 7), 1U);
  EXPECT_EQ(mesh.next_hop(3, 0), 2U);
}

TEST(TnwNextHops, RefusesNetworksWithoutNeighbours) {
  const auto message_of = [](const TopologyDescription& topology) -> std::string {
    try {
      const tnw::NextHops hops(topology, 6);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message_of(CrossbarDescription{}).find("network.topology"), std::string::npos);
  EXPECT_NE(message_of(TorusDescription({2, 2, 2, 2})).find("network.dims = 4 dimensions"),
            std::string::npos);
}

}  // namespace
}  // namespace apenet
