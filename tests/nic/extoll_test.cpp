// The mechanisms of the EXTOLL card, against times calculated by hand (docs/models/extoll.md).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "network/topology/cube.hpp"
#include "nic/card_fixture.hpp"
#include "support/machines.hpp"

namespace apenet {
namespace {

using ExtollTest = test::CardFixture;

// Clocks of 10 ns, one byte per nanosecond on the wire, and no latencies except those named. From a packet's
// injection until its header is at the target: two routers and a link, 250 ns.
MachineDescription round_extoll() {
  MachineDescription machine = test::machine("extoll-64");
  const DataRate byte_per_ns = DataRate::bytes_per_second(1'000'000'000);
  machine.network.topology = MeshDescription({4});
  machine.network.links = {{byte_per_ns, Time::from_ns(50)}};
  machine.network.local_rate = byte_per_ns;
  machine.network.router_latency = Time::from_ns(100);
  machine.host.bus.clock = {100'000'000};
  machine.host.bus.read_latency = Time::from_ns(300);
  machine.host.bus.pio_write_latency = Time::from_ns(200);
  extoll::Description& card = std::get<extoll::Description>(machine.nic);
  card.clock = {100'000'000};
  card.velo_send_cycles = 12;
  card.velo_receive_cycles = 8;
  card.rma_requester_cycles = 20;
  card.rma_responder_cycles = 30;
  card.rma_completer_cycles = 8;
  return machine;
}

TEST_F(ExtollTest, AVeloPacketTakesTheSumOfItsSteps) {
  wire(round_extoll(), {0, 1});
  machine->post(Time::zero(), {.source = 0, .target = 1, .from_cpu = true, .want_local = true, .bytes = 8});
  simulation.run();
  // Processor write 200, requester 120, crossing 250, completer 80, and a slot of 56 + 8 bytes in 1 + 8
  // clocks.
  EXPECT_EQ(completed_ns(CompletionKind::arrived), 200 + 120 + 250 + 80 + 90);
  EXPECT_EQ(completed_ns(CompletionKind::sent), 200) << "the processor has written it, so no memory is read";
  EXPECT_EQ(recorder.of(CompletionKind::arrived).at(0).mailbox_packets, 1U);
  EXPECT_EQ(counter("velo_packets"), 1U);
}

TEST_F(ExtollTest, ATrainGoesAtThePaceOfTheProcessor) {
  wire(round_extoll(), {0, 1});
  machine->post(Time::zero(), {.source = 0,
                               .target = 1,
                               .from_cpu = true,
                               .bytes = 56 + 56 + 10,
                               .packet_interval = Time::from_ns(500)});
  simulation.run();
  EXPECT_EQ(completed_ns(CompletionKind::arrived), 2 * 500 + 200 + 120 + 250 + 80 + 90);
  EXPECT_EQ(recorder.of(CompletionKind::arrived).at(0).mailbox_packets, 3U);
  EXPECT_EQ(counter("velo_packets"), 3U);
}

TEST_F(ExtollTest, ATrainWithoutPauseGoesAtThePaceOfTheRequester) {
  wire(round_extoll(), {0, 1});
  machine->post(Time::zero(),
                {.source = 0, .target = 1, .from_cpu = true, .want_local = true, .bytes = 56 + 56 + 10});
  simulation.run();
  // On the bus 1 + 8 clocks each until 200 and 290, and 1 + 3 until 330. The requester has finished the third
  // packet 3 x 120 after 200.
  EXPECT_EQ(completed_ns(CompletionKind::sent), 330);
  EXPECT_EQ(completed_ns(CompletionKind::arrived), 200 + 3 * 120 + 250 + 80 + 90);
}

TEST_F(ExtollTest, AFullMailboxHoldsBackUntilAMessageIsTaken) {
  MachineDescription description = round_extoll();
  std::get<extoll::Description>(description.nic).velo_mailbox_entries = 2;
  wire(description, {0, 1});
  for (std::uint64_t message = 0; message < 3; ++message) {
    machine->post(Time::zero(), {.source = 0, .target = 1, .from_cpu = true, .bytes = 8, .message = message});
  }
  simulation.run();
  EXPECT_EQ(recorder.of(CompletionKind::arrived).size(), 2U) << "no message has been taken";
  EXPECT_EQ(counter("packets_held_back"), 1U);
  EXPECT_EQ(machine->warnings().size(), 1U);
  machine->give_back(Time::from_ns(10'000), 1);
  simulation.run();
  // The processor's write takes 200; then the packet passes the completer, 80, and its slot is written, 90.
  ASSERT_EQ(recorder.of(CompletionKind::arrived).size(), 3U);
  EXPECT_EQ(completed_ns(CompletionKind::arrived, 2), 10'000 + 200 + 80 + 90);
}

TEST_F(ExtollTest, AWholeTrainKeepsItsSlotsUntilItIsTaken) {
  MachineDescription description = round_extoll();
  std::get<extoll::Description>(description.nic).velo_mailbox_entries = 4;
  wire(description, {0, 1});
  machine->post(Time::zero(), {.source = 0, .target = 1, .from_cpu = true, .bytes = 3 * 56, .message = 0});
  machine->post(Time::zero(), {.source = 0, .target = 1, .from_cpu = true, .bytes = 2 * 56, .message = 1});
  simulation.run();
  EXPECT_EQ(recorder.of(CompletionKind::arrived).size(), 1U)
      << "it uses three of four slots, so the next message has only one";
  machine->give_back(simulation.now(), 1);
  simulation.run();
  EXPECT_EQ(recorder.of(CompletionKind::arrived).size(), 2U);
}

// Two senders with one packet each in the two slots, so that neither message can be complete there.
TEST_F(ExtollTest, AMailboxFullOfIncompleteMessagesIsCopiedOut) {
  MachineDescription description = round_extoll();
  std::get<extoll::Description>(description.nic).velo_mailbox_entries = 2;
  wire(description, {0, 1, 2});
  for (const ProcessId source : {ProcessId{0}, ProcessId{2}}) {
    machine->post(Time::zero(), {.source = source,
                                 .target = 1,
                                 .from_cpu = true,
                                 .bytes = 100,
                                 .packet_interval = Time::from_ns(1000)});
  }
  simulation.run();
  EXPECT_EQ(recorder.of(CompletionKind::arrived).size(), 2U);
  EXPECT_EQ(counter("trains_reassembled"), 1U);
  EXPECT_EQ(counter("packets_held_back"), 0U);
}

// Each process has its own mailbox.
TEST_F(ExtollTest, AFullMailboxDoesNotAffectItsNeighbour) {
  MachineDescription description = round_extoll();
  std::get<extoll::Description>(description.nic).velo_mailbox_entries = 1;
  wire(description, {0, 1, 1});
  for (std::uint64_t message = 0; message < 3; ++message) {
    machine->post(
        Time::zero(),
        {.source = 0, .target = message < 2 ? 1U : 2U, .from_cpu = true, .bytes = 8, .message = message});
  }
  simulation.run();
  ASSERT_EQ(recorder.of(CompletionKind::arrived).size(), 2U);
  EXPECT_EQ(recorder.of(CompletionKind::arrived).at(1).process, 2U);
}

TEST_F(ExtollTest, APutIsReadByDmaAndNotifiesAtBothEnds) {
  wire(round_extoll(), {0, 1});
  machine->post(
      Time::zero(),
      {.verb = Verb::put, .source = 0, .target = 1, .want_local = true, .want_remote = true, .bytes = 16});
  simulation.run();
  // Doorbell 200, requester 200, read request 1 clock, memory 300, header and first word 2 clocks. The burst
  // ends a clock later.
  const std::int64_t first_word = 200 + 200 + 10 + 300 + 20;
  EXPECT_EQ(completed_ns(CompletionKind::sent), first_word + 10 + 30)
      << "a notification of 16 bytes in 1 + 2 clocks";
  const std::int64_t landed = first_word + 250 + 80 + 30 + 30;
  EXPECT_EQ(completed_ns(CompletionKind::arrived), landed)
      << "16 bytes and a notification, each 1 + 2 clocks";
  // The target's responder sends the acknowledgement, and the source's completer writes the notification.
  EXPECT_EQ(completed_ns(CompletionKind::remote_done), landed + 300 + 250 + 80 + 30);
  EXPECT_EQ(counter("acknowledgements"), 1U);
  EXPECT_EQ(machine->warnings().size(), 1U);
}

// A ring of registered memory at the target takes the place of the mailbox.
TEST_F(ExtollTest, ASendThatTheCardReadsGoesByRma) {
  wire(round_extoll(), {0, 1});
  machine->post(Time::zero(), {.source = 0, .target = 1, .want_local = true, .bytes = 16});
  simulation.run();
  const std::int64_t first_word = 200 + 200 + 10 + 300 + 20;
  EXPECT_EQ(completed_ns(CompletionKind::sent), first_word + 10 + 30) << "as for a put";
  EXPECT_EQ(completed_ns(CompletionKind::arrived), first_word + 250 + 80 + 30 + 30);
  EXPECT_EQ(recorder.of(CompletionKind::arrived).at(0).mailbox_packets, 0U);
  EXPECT_EQ(counter("velo_packets"), 0U);
}

TEST_F(ExtollTest, AnImmediatePutNeedsNoRead) {
  wire(round_extoll(), {0, 1});
  machine->post(Time::zero(), {.verb = Verb::put, .source = 0, .target = 1, .from_cpu = true, .bytes = 8});
  simulation.run();
  EXPECT_EQ(completed_ns(CompletionKind::arrived), 200 + 200 + 250 + 80 + 20 + 30);
}

TEST_F(ExtollTest, AGetIsServedByTheResponderWithoutAnyCpu) {
  wire(round_extoll(), {0, 1});
  machine->post(Time::zero(), {.verb = Verb::get, .source = 0, .target = 1, .bytes = 16});
  simulation.run();
  // The request is complete when its tail arrives: 8 + 24 + 8 bytes.
  const std::int64_t asked = 200 + 200 + 250 + 40;
  const std::int64_t first_word = asked + 300 + 10 + 300 + 20;
  EXPECT_EQ(completed_ns(CompletionKind::got), first_word + 250 + 80 + 30 + 30);
  EXPECT_EQ(counter("gets_served"), 1U);
  EXPECT_TRUE(machine->warnings().empty()) << "the hardware supports gets";
}

TEST_F(ExtollTest, AGetTellsBothEndsOnRequest) {
  wire(round_extoll(), {0, 1});
  machine->post(Time::zero(), {.verb = Verb::get,
                               .source = 0,
                               .target = 1,
                               .notify_requester = true,
                               .notify_responder = true,
                               .bytes = 16});
  simulation.run();
  // Written 200, decoded 200, a notification of 16 bytes in 1 + 2 clocks.
  EXPECT_EQ(completed_ns(CompletionKind::sent), 200 + 200 + 30);
  // The request's tail, decoded 300, read: a clock, 300, and 1 + 2 clocks; and the notification.
  EXPECT_EQ(completed_ns(CompletionKind::served), 200 + 200 + 250 + 40 + 300 + 10 + 300 + 30 + 30);
  EXPECT_EQ(recorder.of(CompletionKind::served).at(0).process, 1U);
  EXPECT_EQ(recorder.of(CompletionKind::got).size(), 1U);
  EXPECT_TRUE(recorder.executed.empty());
}

TEST_F(ExtollTest, ALockTakesEffectWhenTheResponderHasReadIt) {
  for (const bool notifies : {false, true}) {
    const Time begin = simulation.now();
    recorder.executed.clear();
    if (!machine) wire(round_extoll(), {0, 1, 1});
    machine->post(begin, {.verb = Verb::get,
                          .source = 0,
                          .target = 1,
                          .notify_responder = notifies,
                          .is_lock = true,
                          .bytes = 8,
                          .message = notifies ? 1U : 0U});
    simulation.run();
    ASSERT_EQ(recorder.executed.size(), 1U);
    const Time executed = recorder.executed.begin()->second;
    EXPECT_EQ((executed - begin).ps() / 1000, 200 + 200 + 250 + 40 + 300 + 10 + 300 + 20);
    EXPECT_EQ(recorder.of(CompletionKind::served).size(), notifies ? 1U : 0U);
  }
  EXPECT_EQ(recorder.of(CompletionKind::got).size(), 2U);
  // Between processes of one node the processor changes the word.
  machine->post(simulation.now(), {.verb = Verb::get,
                                   .source = 1,
                                   .target = 2,
                                   .notify_requester = true,
                                   .notify_responder = true,
                                   .is_lock = true,
                                   .bytes = 8});
  simulation.run();
  EXPECT_EQ(recorder.executed.size(), 2U);
  EXPECT_EQ(recorder.of(CompletionKind::served).size(), 2U);
  EXPECT_EQ(recorder.of(CompletionKind::sent).size(), 1U);
}

TEST_F(ExtollTest, OtherCardsRefuseLocksAndNotificationsOfGets) {
  wire(test::machine("ideal"), {0, 1});
  const auto refusal = [&](const Descriptor& descriptor) -> std::string {
    try {
      machine->post(Time::zero(), descriptor);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({.verb = Verb::get, .source = 0, .target = 1, .is_lock = true, .bytes = 8}),
            "descriptor.verb = lock: expected what the card can do: it has no locks");
  EXPECT_EQ(
      refusal({.verb = Verb::get, .source = 0, .target = 1, .notify_responder = true, .bytes = 8}),
      "descriptor.notify = requester or responder: expected none: the card tells only of the data of a get");
}

// `sent` follows the packets that wait for room, so that a library can stop writing.
TEST_F(ExtollTest, SentWaitsForThePacketsThatAreHeldBack) {
  MachineDescription description = round_extoll();
  std::get<extoll::Description>(description.nic).velo_mailbox_entries = 1;
  wire(description, {0, 1});
  constexpr std::uint64_t count = 4000;  // more than the buffers on the way hold
  for (std::uint64_t message = 0; message < count; ++message) {
    machine->post(
        Time::zero(),
        {.source = 0, .target = 1, .from_cpu = true, .want_local = true, .bytes = 8, .message = message});
  }
  simulation.run();
  ASSERT_EQ(recorder.of(CompletionKind::arrived).size(), 1U);
  const std::size_t left = recorder.of(CompletionKind::sent).size();
  EXPECT_LT(left, count);
  EXPECT_GT(left, 1U);
  recorder.empties_mailboxes_of(*machine);
  machine->give_back(simulation.now(), 1);
  simulation.run();
  EXPECT_EQ(recorder.of(CompletionKind::arrived).size(), count);
  const std::vector<Completion> sent = recorder.of(CompletionKind::sent);
  ASSERT_EQ(sent.size(), count);
  for (std::uint64_t message = 0; message < count; ++message) {
    EXPECT_EQ(sent[message].message, message) << "in their order";
  }
}

TEST_F(ExtollTest, PipelinedTransactionsFollowEachOtherAtThePaceOfTheirUnit) {
  wire(round_extoll(), {0, 1});
  for (std::uint64_t message = 0; message < 10; ++message) {
    machine->post(Time::zero(),
                  {.verb = Verb::put, .source = 0, .target = 1, .bytes = 8, .message = message});
  }
  simulation.run();
  EXPECT_EQ(completed_ns(CompletionKind::arrived, 9) - completed_ns(CompletionKind::arrived, 8), 200);
  for (std::uint64_t message = 10; message < 20; ++message) {
    machine->post(simulation.now(),
                  {.verb = Verb::get, .source = 0, .target = 1, .bytes = 8, .message = message});
  }
  simulation.run();
  EXPECT_EQ(completed_ns(CompletionKind::got, 9) - completed_ns(CompletionKind::got, 8), 300);
}

// A long put occupies the requester packet by packet, so that a put of another process gets its turn.
TEST_F(ExtollTest, ProcessesTakeTurnsPacketByPacket) {
  wire(round_extoll(), {0, 0, 1});
  machine->post(Time::zero(), {.verb = Verb::put, .source = 0, .target = 2, .bytes = 100'000, .message = 0});
  machine->post(Time::from_ns(10'000),
                {.verb = Verb::put, .source = 1, .target = 2, .bytes = 1000, .message = 0});
  simulation.run();
  EXPECT_EQ(recorder.of(CompletionKind::arrived).at(0).source, 1U);
}

// VELO has its own engine and channel, so it does not wait for a long put of the same process.
TEST_F(ExtollTest, ASmallMessageOvertakesALongPut) {
  wire(round_extoll(), {0, 1});
  machine->post(Time::zero(), {.verb = Verb::put, .source = 0, .target = 1, .bytes = 100'000, .message = 0});
  machine->post(Time::from_ns(10'000),
                {.source = 0, .target = 1, .from_cpu = true, .bytes = 8, .message = 1});
  simulation.run();
  EXPECT_EQ(recorder.of(CompletionKind::arrived).at(0).message, 1U);
}

TEST_F(ExtollTest, PacketsAreCountedByPayloadAndGranule) {
  wire(round_extoll(), {0, 1});
  machine->post(Time::zero(), {.verb = Verb::put, .source = 0, .target = 1, .bytes = 257});
  machine->post(Time::zero(), {.source = 0, .target = 1, .from_cpu = true, .bytes = 57, .message = 1});
  simulation.run();
  std::uint64_t wire_bytes = 0;
  for (const LinkUse& link : machine->link_use()) wire_bytes += link.wire_bytes;
  // Header and footer are 8 bytes each; a put's packet has 16 more, with 256 and 1 of payload; VELO has 8
  // more, with 56 and 1.
  EXPECT_EQ(wire_bytes, (16U + 16U + 256U) + (16U + 16U + 4U) + (16U + 64U) + (16U + 12U));
}

// What the library chooses by (Machine::send_times) is the difference that the simulation has.
class SendTimesTest : public test::CardFixture {
 protected:
  std::int64_t arrival_ns(const MachineDescription& description, bool from_cpu, std::int64_t bytes,
                          Time interval) {
    Simulation own;
    Machine two(own, description, {0, 1});
    test::Recorder recorded(own);
    two.set_sink(recorded);
    two.post(Time::zero(),
             {.source = 0, .target = 1, .from_cpu = from_cpu, .bytes = bytes, .packet_interval = interval});
    own.run();
    return recorded.of(CompletionKind::arrived).at(0).time.ps() / 1000;
  }

  void expect_agreement(const MachineDescription& description, Time interval) {
    wire(description, {0, 1});
    for (const std::int64_t bytes : {8, 56, 64, 112, 128, 200, 256, 257, 448, 512, 700, 1064}) {
      const SendTimes times = machine->send_times(bytes, interval);
      const std::int64_t simulated_ns =
          arrival_ns(description, true, bytes, interval) - arrival_ns(description, false, bytes, interval);
      EXPECT_NEAR(static_cast<double>((times.by_cpu - times.by_card).ps()) / 1000.0,
                  static_cast<double>(simulated_ns), 20)
          << bytes;
    }
  }
};

TEST_F(SendTimesTest, AgreeWithTheSimulation) {
  expect_agreement(test::machine("extoll-64"), Time::from_ns(50));
}

TEST_F(SendTimesTest, AgreeWhereAnotherStepIsTheSlowest) {
  const MachineDescription round = round_extoll();
  expect_agreement(round, Time::zero());        // the requester
  expect_agreement(round, Time::from_ns(400));  // the processor
  MachineDescription machine_of_slow_reads = round;
  machine_of_slow_reads.host.bus.outstanding_reads = 1;
  expect_agreement(machine_of_slow_reads, Time::zero());
  MachineDescription machine_of_slow_links = round;
  machine_of_slow_links.network.links.at(0).rate = DataRate::bytes_per_second(300'000'000);
  expect_agreement(machine_of_slow_links, Time::zero());
}

}  // namespace
}  // namespace apenet
