// The mechanisms of the host channel adapter, against times calculated by hand (docs/models/hca.md).
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernel/random.hpp"
#include "network/topology/cube.hpp"
#include "nic/card_fixture.hpp"
#include "support/cases.hpp"
#include "support/machines.hpp"

namespace apenet {
namespace {

hca::Description& card_of(MachineDescription& machine) {
  return std::get<hca::Description>(machine.nic);
}

// Two nodes of a ring. Bus clocks of 10 ns, one byte per nanosecond on the wire, and no latencies except
// those named. A header crosses two routers and a link in 250 ns.
MachineDescription round_hca() {
  MachineDescription machine = test::pax16();
  const DataRate byte_per_ns = DataRate::bytes_per_second(1'000'000'000);
  machine.network.routing = "dimension-order";
  machine.network.topology = TorusDescription({2});
  machine.network.links = {{byte_per_ns, Time::from_ns(50)}};
  machine.network.local_rate = byte_per_ns;
  machine.network.local_latency = Time::zero();
  machine.network.router_latency = Time::from_ns(100);
  machine.network.virtual_channels = 2;
  machine.host.bus = {.clock = {100'000'000},
                      .width_bytes = 8,
                      .full_duplex = true,
                      .transaction_overhead_cycles = 10,
                      .max_burst_bytes = 256,
                      .read_latency = Time::from_ns(300),
                      .outstanding_reads = 32,
                      .pio_write_latency = Time::from_ns(200)};
  hca::Description& card = card_of(machine);
  card.mtu_bytes = 256;
  card.virtual_lanes = 2;
  card.max_inline_bytes = 64;
  card.blueflame_bytes = 16;
  card.wqe_latency = Time::from_ns(100);
  card.wqe_interval = Time::zero();
  card.receive_latency = Time::from_ns(80);
  card.read_service = Time::from_ns(60);
  card.receive_repost = Time::from_ns(5000);
  card.rnr_timer = Time::from_ns(3000);
  return machine;
}

constexpr std::int64_t doorbell = 200;
constexpr std::int64_t process = 100;
constexpr std::int64_t crossing = 250;
constexpr std::int64_t receive = 80;
// The header of the request on the bus, and the bridge.
constexpr std::int64_t read_start = 100 + 300;
constexpr std::int64_t entry_fetch = read_start + 180;  // 10 + 8 clocks
constexpr std::int64_t first_word = read_start + 110;   // 10 + 1 clocks
constexpr std::int64_t payload_16 = 120;                // 10 + 2 clocks
constexpr std::int64_t completion = 180;                // 10 + 8 clocks
constexpr std::int64_t acknowledgement_wire = 20 + 4 + 6;

class HcaTest : public test::CardFixture {
 protected:
  [[nodiscard]] std::uint64_t bytes_on_links() const {
    std::uint64_t bytes = 0;
    for (const LinkUse& link : machine->link_use()) bytes += link.wire_bytes;
    return bytes;
  }
};

TEST_F(HcaTest, ADoorbellMakesTheCardFetchTheEntryAndThenThePayload) {
  wire(round_hca());
  machine->post(Time::zero(), {.source = 0, .target = 1, .bytes = 16});
  simulation.run();
  const std::int64_t header_in = doorbell + entry_fetch + process + first_word + crossing;
  EXPECT_EQ(completed_ns(CompletionKind::arrived), header_in + receive + payload_16 + completion);
}

TEST_F(HcaTest, ASmallInlinePayloadIsWrittenToTheCardByTheProcessor) {
  wire(round_hca());
  machine->post(Time::zero(), {.source = 0, .target = 1, .from_cpu = true, .bytes = 16});
  simulation.run();
  const std::int64_t header_in = doorbell + process + crossing;
  EXPECT_EQ(completed_ns(CompletionKind::arrived), header_in + receive + payload_16 + completion);
}

TEST_F(HcaTest, LinesOfAnEntryLeaveTheProcessorOneAfterAnother) {
  MachineDescription description = round_hca();
  card_of(description).blueflame_interval = Time::from_ns(70);
  card_of(description).max_inline_bytes = card_of(description).blueflame_bytes = 128;
  wire(description);
  // Entries of 64, 64 + 1 and 64 + 65 bytes: one, two and three lines. No entry overtakes another.
  machine->post(Time::zero(), {.source = 0, .target = 1, .from_cpu = true, .bytes = 0, .message = 1});
  machine->post(Time::from_ns(10'000),
                {.source = 0, .target = 1, .from_cpu = true, .bytes = 1, .message = 2});
  machine->post(Time::from_ns(20'000),
                {.source = 0, .target = 1, .from_cpu = true, .bytes = 65, .message = 3});
  machine->post(Time::from_ns(20'001),
                {.source = 0, .target = 1, .from_cpu = true, .bytes = 0, .message = 4});
  simulation.run();
  const std::int64_t header_in = doorbell + process + crossing + receive;
  EXPECT_EQ(completed_ns(CompletionKind::arrived, 0), header_in + completion);
  EXPECT_EQ(completed_ns(CompletionKind::arrived, 1), 10'000 + 70 + header_in + 110 + completion);
  EXPECT_EQ(completed_ns(CompletionKind::arrived, 2), 20'000 + 140 + header_in + 190 + completion);
  EXPECT_GT(completed_ns(CompletionKind::arrived, 3), completed_ns(CompletionKind::arrived, 2));
}

TEST_F(HcaTest, ALargerInlinePayloadIsFetchedWithItsEntry) {
  wire(round_hca());
  machine->post(Time::zero(), {.source = 0, .target = 1, .from_cpu = true, .bytes = 64});
  simulation.run();
  // 64 + 64 bytes are 16 words. The packet of 90 bytes has arrived before its write of 10 + 8 clocks ends.
  const std::int64_t header_in = doorbell + read_start + 260 + process + crossing;
  EXPECT_EQ(completed_ns(CompletionKind::arrived), header_in + receive + 180 + completion);
}

TEST_F(HcaTest, IfTheProcessorWritesEveryEntryOnlyThePayloadIsFetched) {
  MachineDescription description = round_hca();
  std::get<hca::Description>(description.nic).is_blueflame_for_all = true;
  wire(description);
  machine->post(Time::zero(), {.source = 0, .target = 1, .bytes = 16});
  simulation.run();
  const std::int64_t header_in = doorbell + process + first_word + crossing;
  EXPECT_EQ(completed_ns(CompletionKind::arrived), header_in + receive + payload_16 + completion);
}

TEST_F(HcaTest, SentIsReportedWhenTheTargetHasAcknowledged) {
  wire(round_hca());
  machine->post(Time::zero(), {.source = 0, .target = 1, .from_cpu = true, .want_local = true, .bytes = 16});
  simulation.run();
  const std::int64_t arrived = doorbell + process + crossing + receive + payload_16 + completion;
  EXPECT_EQ(completed_ns(CompletionKind::arrived), arrived);
  EXPECT_EQ(completed_ns(CompletionKind::sent), arrived + crossing + receive + completion);
  EXPECT_EQ(counter("acknowledgements"), 1U);
  EXPECT_EQ(bytes_on_links(), 26U + 16U + acknowledgement_wire);
}

TEST_F(HcaTest, ASilentWriteIsAcknowledgedWhenItIsInMemory) {
  wire(round_hca());
  machine->post(Time::zero(), {.verb = Verb::put,
                               .source = 0,
                               .target = 1,
                               .want_remote = true,
                               .notify_target = false,
                               .bytes = 16});
  simulation.run();
  const std::int64_t landed = doorbell + entry_fetch + process + first_word + crossing + receive + payload_16;
  EXPECT_EQ(recorder.landed.begin()->second, Time::from_ns(landed));
  ASSERT_EQ(recorder.records.size(), 1U);
  EXPECT_EQ(completed_ns(CompletionKind::remote_done), landed + crossing + receive + completion);
}

TEST_F(HcaTest, MessagesAreSplitAtTheMtuAndCarryTheHeadersOfTheirOperation) {
  // 1001 bytes are three packets of 256 and one of 233, padded to 236.
  constexpr std::uint64_t packets = 4 * 26 + 3 * 256 + 236;
  wire(round_hca());
  machine->post(Time::zero(), {.source = 0, .target = 1, .bytes = 1001, .message = 0});
  simulation.run();
  EXPECT_EQ(counter("packets"), 4U);
  EXPECT_EQ(bytes_on_links(), packets);
  machine->post(simulation.now(), {.verb = Verb::put, .source = 0, .target = 1, .bytes = 1001, .message = 1});
  simulation.run();
  EXPECT_EQ(counter("packets"), 8U);
  EXPECT_EQ(bytes_on_links(), 2 * packets + 16U + 4U)
      << "RDMA header in the first packet, immediate in the last";
  machine->post(simulation.now(), {.verb = Verb::get, .source = 0, .target = 1, .bytes = 1001, .message = 2});
  simulation.run();
  EXPECT_EQ(counter("packets"), 13U);
  EXPECT_EQ(bytes_on_links(), 3 * packets + 20U + (26U + 16U) + 2 * 4U)
      << "a request, and acknowledgement headers in the first and last packet";
}

TEST_F(HcaTest, OneOfMessagesPerAckAsksForAnAcknowledgement) {
  MachineDescription description = round_hca();
  card_of(description).messages_per_ack = 4;
  wire(description);
  for (std::uint64_t message = 0; message < 10; ++message) {
    machine->post(Time::zero(),
                  {.source = 0, .target = 1, .from_cpu = true, .bytes = 16, .message = message});
  }
  simulation.run();
  EXPECT_EQ(recorder.of(CompletionKind::arrived).size(), 10U);
  EXPECT_EQ(counter("acknowledgements"), 2U);
}

// A connection has at most one waiting acknowledgement: while it waits for the lane, later ones merge with
// it. The lane is occupied by the response to a read of eight packets, which leaves no room after it.
TEST_F(HcaTest, WaitingAcknowledgementsMerge) {
  MachineDescription description = round_hca();
  description.network.injection_buffer_bytes = 310;
  wire(description);
  machine->post(Time::zero(), {.verb = Verb::get, .source = 0, .target = 1, .bytes = 2048, .message = 100});
  for (std::uint64_t message = 0; message < 20; ++message) {
    machine->post(
        Time::from_ns(1000),
        {.source = 0, .target = 1, .from_cpu = true, .want_local = true, .bytes = 16, .message = message});
  }
  simulation.run();
  EXPECT_EQ(recorder.of(CompletionKind::sent).size(), 20U);
  EXPECT_LT(counter("acknowledgements"), 20U);
}

TEST_F(HcaTest, TheTargetsCardServesAReadWithoutItsCpu) {
  wire(round_hca());
  machine->post(Time::zero(), {.verb = Verb::get, .source = 0, .target = 1, .bytes = 16});
  simulation.run();
  const std::int64_t asked = doorbell + entry_fetch + process + crossing + receive;
  const std::int64_t answered = asked + 60 + first_word + crossing;
  EXPECT_EQ(completed_ns(CompletionKind::got), answered + receive + payload_16 + completion);
  EXPECT_EQ(counter("reads_served"), 1U);
}

TEST_F(HcaTest, ReadsBeyondTheLimitWaitForTheResponses) {
  MachineDescription description = round_hca();
  card_of(description).outstanding_rdma_reads = 1;
  wire(description);
  for (std::uint64_t message = 0; message < 4; ++message) {
    machine->post(Time::zero(),
                  {.verb = Verb::get, .source = 0, .target = 1, .bytes = 16, .message = message});
  }
  simulation.run();
  // From the tail of one response (46 bytes) to that of the next: nothing overlaps.
  const std::int64_t period = crossing + receive + 60 + first_word + crossing + 46;
  const std::vector<Completion> got = recorder.of(CompletionKind::got);
  ASSERT_EQ(got.size(), 4U);
  for (std::size_t i = 1; i < got.size(); ++i) {
    EXPECT_EQ(got[i].message, i);
    EXPECT_EQ(got[i].time - got[i - 1].time, Time::from_ns(period));
  }
  EXPECT_EQ(counter("reads_held_back"), 3U);
}

TEST_F(HcaTest, AReceiverThatIsNotReadyHoldsTheSenderBack) {
  MachineDescription description = round_hca();
  card_of(description).receive_queue_entries = 1;
  wire(description);
  for (std::uint64_t message = 0; message < 2; ++message) {
    machine->post(Time::zero(),
                  {.source = 0, .target = 1, .from_cpu = true, .bytes = 16, .message = message});
  }
  simulation.run();
  const std::int64_t first = doorbell + process + crossing + receive + payload_16 + completion;
  // The second entry crosses the bus after the first, 10 + 10 clocks. Its packet of 42 bytes is refused
  // immediately, and again after the timer: the buffer is posted again 5000 ns after the first message was
  // reported.
  const std::int64_t refused = doorbell + 200 + process + crossing + 42;
  const std::int64_t round = crossing + receive + 3000 + process;  // until the next attempt departs
  const std::int64_t refused_again = refused + round + crossing + 42;
  ASSERT_LT(refused_again, first + 5000);
  const std::int64_t header_in = refused_again + round + crossing;
  ASSERT_GT(header_in, first + 5000);
  const std::vector<Completion> arrived = recorder.of(CompletionKind::arrived);
  ASSERT_EQ(arrived.size(), 2U);
  EXPECT_EQ(arrived[0].time, Time::from_ns(first));
  EXPECT_EQ(arrived[1].time, Time::from_ns(header_in + receive + payload_16 + completion));
  EXPECT_EQ(counter("receiver_not_ready"), 2U);
  EXPECT_EQ(machine->warnings().size(), 1U);
}

TEST_F(HcaTest, MessagesAfterARefusedOneAreSentAgainInOrder) {
  MachineDescription description = round_hca();
  card_of(description).receive_queue_entries = 1;
  wire(description);
  // Sends of several packets, silent writes and reads one after another, most of them refused at first.
  constexpr std::uint64_t messages = 60;
  for (std::uint64_t message = 0; message < messages; ++message) {
    machine->post(Time::zero(), {.verb = static_cast<Verb>(message % 3),
                                 .source = 0,
                                 .target = 1,
                                 .want_remote = true,
                                 .notify_target = message % 2 == 0,
                                 .bytes = static_cast<std::int64_t>(message * 20),
                                 .message = message});
  }
  simulation.run();
  EXPECT_EQ(recorder.landed.size(), messages);
  EXPECT_GT(counter("refused_packets"), counter("receiver_not_ready"));
  std::uint64_t last = 0;
  for (const test::Record& record : recorder.records) {
    if (record.completion.kind == CompletionKind::arrived) continue;  // reported to the other process
    EXPECT_GE(record.completion.message, last) << "completions of a queue pair keep their order";
    last = record.completion.message;
  }
}

// Nodes 1 and 4 are the neighbours of node 0 on a ring of five, behind slow links. Of three FIFOs both take
// number 1 by destination, and by queue pair those that come first and fourth share one.
TEST(HcaFifos, QueuePairsTakeTheLeastLoadedOne) {
  const auto run = [](InjectionRule rule, bool has_second) {
    MachineDescription description = round_hca();
    NetworkDescription& network = description.network;
    network.topology = TorusDescription({5});
    network.links = {{{1, 8, 1'000'000'000}, Time::from_ns(50)}};
    network.injection_fifos = 3;
    network.injection_rule = rule;
    Simulation simulation;
    test::Recorder recorder(simulation);
    Machine machine(simulation, description, {0, 1, 4, 2, 3});
    machine.set_sink(recorder);
    // In order of first use: 1, 2, 3 and 4; all are idle when the long messages come.
    std::uint64_t message = 0;
    for (const ProcessId target : {1U, 3U, 4U, 2U}) {
      machine.post(Time::from_ns(static_cast<std::int64_t>(message) * 20'000),
                   {.source = 0, .target = target, .bytes = 16, .message = message});
      ++message;
    }
    machine.post(Time::from_ns(200'000), {.source = 0, .target = 1, .bytes = 100'000, .message = 4});
    if (has_second)
      machine.post(Time::from_ns(200'000), {.source = 0, .target = 2, .bytes = 100'000, .message = 5});
    simulation.run();
    return (recorder.of(CompletionKind::arrived).back().time - Time::from_ns(200'000)).ps();
  };
  const auto alone = static_cast<double>(run(InjectionRule::least_loaded, false));
  EXPECT_LT(static_cast<double>(run(InjectionRule::least_loaded, true)), 1.02 * alone);
  EXPECT_GT(static_cast<double>(run(InjectionRule::destination, true)), 1.9 * alone);
  EXPECT_GT(static_cast<double>(run(InjectionRule::queue, true)), 1.9 * alone);
}

// A queue pair whose packets were refused may not change its FIFO before they are sent again.
TEST(HcaFifos, TheLeastLoadedOneKeepsTheOrderOfAQueuePair) {
  for (std::uint64_t seed = 1; seed <= test::drawn_cases(16); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 1);
    MachineDescription description = round_hca();
    card_of(description).receive_queue_entries = static_cast<std::int64_t>(1 + random.below(3));
    card_of(description).rnr_timer = Time::from_ns(static_cast<std::int64_t>(1 + random.below(3000)));
    description.network.topology = TorusDescription({5});
    description.network.links = {{{1, 4, 1'000'000'000}, Time::from_ns(50)}};
    description.network.injection_fifos = static_cast<std::uint32_t>(2 + random.below(4));
    description.network.injection_rule = InjectionRule::least_loaded;
    Simulation simulation;
    test::Recorder recorder(simulation);
    Machine machine(simulation, description, {0, 1, 2, 3, 4});
    machine.set_sink(recorder);
    constexpr std::uint64_t messages = 300;
    Time when;
    for (std::uint64_t message = 0; message < messages; ++message) {
      when += Time::from_ns(static_cast<std::int64_t>(random.below(2000)));
      const auto source = static_cast<ProcessId>(random.below(5));
      machine.post(when, {.verb = Verb::send,
                          .source = source,
                          .target = static_cast<ProcessId>((source + 1 + random.below(4)) % 5),
                          .bytes = static_cast<std::int64_t>(random.below(1500)),
                          .message = message});
    }
    simulation.run();
    EXPECT_EQ(recorder.landed.size(), messages);
    std::map<std::pair<ProcessId, ProcessId>, std::uint64_t> last;
    for (const test::Record& record : recorder.records) {
      if (record.completion.kind != CompletionKind::arrived) continue;
      std::uint64_t& before = last[{record.completion.source, record.completion.process}];
      EXPECT_GE(record.completion.message, before);
      before = record.completion.message;
    }
  }
}

TEST_F(HcaTest, AContextThatIsNotOnTheCardIsFetched) {
  MachineDescription description = round_hca();
  card_of(description).context_cache_entries = 1;
  card_of(description).context_miss = Time::from_ns(700);
  wire(description);
  for (std::uint64_t message = 0; message < 2; ++message) {
    machine->post(Time::from_ns(static_cast<std::int64_t>(message) * 10'000),
                  {.source = 0, .target = 1, .from_cpu = true, .bytes = 16, .message = message});
  }
  simulation.run();
  const std::int64_t cached = doorbell + process + crossing + receive + payload_16 + completion;
  const std::vector<Completion> arrived = recorder.of(CompletionKind::arrived);
  // At the source before the packet; at the target after the packet's tail, 42 ns after its header.
  EXPECT_EQ(arrived.at(0).time, Time::from_ns(cached + 700 + 42 + 700));
  EXPECT_EQ(arrived.at(1).time, Time::from_ns(10'000 + cached));
  EXPECT_EQ(counter("context_misses"), 2U);
}

TEST_F(HcaTest, QueuePairsTakeTurnsPacketByPacket) {
  wire(round_hca(), {0, 1, 1});
  machine->post(Time::zero(), {.source = 0, .target = 1, .bytes = 100'000, .message = 0});
  machine->post(Time::from_ns(20'000), {.source = 0, .target = 2, .bytes = 1000, .message = 1});
  simulation.run();
  EXPECT_EQ(recorder.of(CompletionKind::arrived).at(0).message, 1U)
      << "the short message does not wait for the long one";
}

TEST_F(HcaTest, PostsBeyondTheSendQueueWaitAndKeepTheirOrder) {
  MachineDescription description = round_hca();
  card_of(description).send_queue_entries = 4;
  card_of(description).messages_per_ack = 2;
  wire(description);
  for (std::uint64_t message = 0; message < 50; ++message) {
    machine->post(Time::zero(), {.source = 0,
                                 .target = 1,
                                 .from_cpu = message % 3 == 0,
                                 .bytes = static_cast<std::int64_t>(message % 16),
                                 .message = message});
  }
  simulation.run();
  EXPECT_GT(counter("posts_held_back"), 0U);
  const std::vector<Completion> arrived = recorder.of(CompletionKind::arrived);
  ASSERT_EQ(arrived.size(), 50U);
  for (std::uint64_t message = 0; message < 50; ++message) EXPECT_EQ(arrived[message].message, message);
}

// With any scarce resource, every message is delivered exactly once (the recorder checks it).
TEST(HcaProperties, AnyDescriptionDeliversEverything) {
  for (std::uint64_t seed = 1; seed <= test::drawn_cases(16); ++seed) {
    RandomStream random(seed, 0);
    const auto up_to = [&](std::uint64_t most) { return static_cast<std::int64_t>(1 + random.below(most)); };
    MachineDescription description = round_hca();
    hca::Description& card = card_of(description);
    card.mtu_bytes = 4 * up_to(128);
    card.send_queue_entries = up_to(6);
    card.messages_per_ack = up_to(static_cast<std::uint64_t>(card.send_queue_entries));
    card.wqe_prefetch_entries = up_to(4);
    card.outstanding_rdma_reads = up_to(3);
    card.receive_queue_entries = up_to(5);
    card.context_cache_entries = up_to(6) - 1;
    card.rnr_timer = Time::from_ns(up_to(6000));
    card.receive_repost = Time::from_ns(up_to(4000) - 1);
    description.host.bus.outstanding_reads = static_cast<std::uint32_t>(up_to(4));
    const std::int64_t buffer = card.mtu_bytes + 60 + up_to(400);
    description.network.buffer_bytes = buffer;
    description.network.injection_buffer_bytes = buffer;
    description.network.ejection_buffer_bytes = buffer;
    description.network.injection_fifos = static_cast<std::uint32_t>(up_to(3));
    description.network.injection_rule =
        random.below(2) == 0 ? InjectionRule::queue : InjectionRule::least_loaded;

    Simulation simulation;
    test::Recorder recorder(simulation);
    Machine machine(simulation, description, {0, 0, 1, 1});
    machine.set_sink(recorder);
    constexpr std::uint64_t messages = 300;
    std::vector<Verb> verbs;
    Time when;
    for (std::uint64_t message = 0; message < messages; ++message) {
      const auto source = static_cast<ProcessId>(random.below(4));
      const auto verb = static_cast<Verb>(random.below(3));
      const bool small = random.below(3) == 0;
      verbs.push_back(verb);
      when += Time::from_ns(static_cast<std::int64_t>(random.below(150)));
      machine.post(when, {.verb = verb,
                          .source = source,
                          .target = (source < 2 ? 2U : 0U) + static_cast<ProcessId>(random.below(2)),
                          .channel = static_cast<std::uint16_t>(random.below(2)),
                          .from_cpu = small,
                          .want_local = random.below(3) == 0,
                          .want_remote = random.below(3) == 0,
                          .notify_target = random.below(2) == 0,
                          .bytes = static_cast<std::int64_t>(random.below(small ? 65 : 3000)),
                          .message = message});
    }
    simulation.run();
    ASSERT_EQ(recorder.landed.size(), messages) << "seed " << seed;
    std::uint64_t got = 0;
    for (const Verb verb : verbs) got += verb == Verb::get ? 1 : 0;
    EXPECT_EQ(recorder.of(CompletionKind::got).size(), got) << "seed " << seed;
  }
}

TEST_F(HcaTest, LimitsAreRefusedByTheNamesOfTheMachineFiles) {
  const auto refused = [this](void (*change)(hca::Description&)) -> std::string {
    MachineDescription description = round_hca();
    change(card_of(description));
    try {
      Machine unwired(simulation, description, {0, 1});
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refused([](hca::Description& card) { card.messages_per_ack = 129; }),
            "card.messages_per_ack = 129: expected at most 128, card.send_queue_entries: a full queue waits "
            "for an acknowledgement");
  EXPECT_EQ(refused([](hca::Description& card) { card.blueflame_bytes = 65; }),
            "card.blueflame_bytes = 65: expected at most 64, card.max_inline_bytes");
  EXPECT_EQ(refused([](hca::Description& card) { card.mtu_bytes = 255; }),
            "card.mtu_bytes = 255: expected a multiple of card.granule_bytes = 4");
  EXPECT_EQ(refused([](hca::Description& card) { card.rnr_timer = Time::zero(); }),
            "card.rnr_timer_us = 0 ps: expected more than zero");
}

}  // namespace
}  // namespace apenet
