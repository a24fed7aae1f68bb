// The contract of every card, independent of its mechanism (src/nic/nic.hpp).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "kernel/random.hpp"
#include "machine/machine.hpp"
#include "nic/contract_cards.hpp"
#include "support/cases.hpp"
#include "support/machines.hpp"
#include "support/recorder.hpp"

namespace apenet {
namespace {

using test::Recorder;
// The verb that a library chooses to bring this many bytes to where the target expects them.
Verb verb_for(const NicCapabilities& card, std::int64_t bytes) {
  return bytes <= card.max_send_bytes ? Verb::send : Verb::put;
}

class CardContract : public testing::TestWithParam<test::ContractCard> {
 protected:
  static constexpr ProcessId processes = 32;
  static constexpr ProcessId per_node = 2;
  const std::uint64_t drawn_messages = test::drawn_cases(2000);

  // Two processes per node on sixteen nodes: 0 and 1 on node 0, and so on.
  CardContract() : machine(simulation, GetParam().machine(), placement()), recorder(simulation) {
    machine.set_sink(recorder);
    recorder.empties_mailboxes_of(machine);
  }
  static std::vector<NodeId> placement() {
    std::vector<NodeId> nodes;
    for (ProcessId p = 0; p < processes; ++p) nodes.push_back(p / per_node);
    return nodes;
  }

  // If the receiver's consent is needed, gives it at the same time.
  static void post(Machine& on, Time when, const Descriptor& descriptor) {
    on.post(when, descriptor);
    if (!on.capabilities().needs_credit) return;
    on.post(when, {.verb = Verb::credit,
                   .source = descriptor.target,
                   .target = descriptor.source,
                   .channel = descriptor.channel,
                   .rail = descriptor.rail,
                   .bytes = descriptor.bytes});
  }
  void post(Time when, const Descriptor& descriptor) { post(machine, when, descriptor); }

  // Maps a number to a verb that the card supports.
  [[nodiscard]] static Verb verb_of(const NicCapabilities& card, std::uint64_t number) {
    const auto verb = static_cast<Verb>(number % 3);
    return verb == Verb::get && !card.get ? Verb::put : verb;
  }
  [[nodiscard]] std::int64_t at_most(std::int64_t bytes) const {
    return std::min(bytes, machine.capabilities().max_message_bytes);
  }

  Descriptor random_descriptor(RandomStream& random, std::uint64_t message) const {
    const NicCapabilities card = machine.capabilities();
    Descriptor descriptor;
    descriptor.verb = verb_of(card, random.below(3));
    descriptor.source = static_cast<ProcessId>(random.below(processes));
    descriptor.target = static_cast<ProcessId>(random.below(processes));
    descriptor.channel = static_cast<std::uint16_t>(random.below(card.channels));
    descriptor.want_local = random.below(2) == 0;
    descriptor.want_remote = random.below(2) == 0;
    descriptor.notify_target = random.below(2) == 0;
    constexpr std::array<std::int64_t, 9> sizes = {0, 1, 15, 16, 100, 256, 257, 1000, 5000};
    descriptor.bytes = at_most(sizes[random.below(sizes.size())]);
    if (card.gpu_memory) {
      descriptor.local_memory = random.below(2) == 0 ? Memory::gpu : Memory::host;
      descriptor.remote_memory = random.below(2) == 0 ? Memory::gpu : Memory::host;
    }
    descriptor.local_address = random.below(std::uint64_t{1} << 20U);
    descriptor.remote_address = random.below(std::uint64_t{1} << 20U);
    if (descriptor.verb == Verb::send) descriptor.bytes = std::min(descriptor.bytes, card.max_send_bytes);
    descriptor.from_cpu = descriptor.bytes <= card.pio_limit_bytes(descriptor.verb) && random.below(3) == 0;
    descriptor.packet_interval = Time::from_ns(static_cast<std::int64_t>(random.below(100)));
    descriptor.message = message;
    return descriptor;
  }

  Simulation simulation;
  Machine machine;
  Recorder recorder;
};

// (kind, notified process) of everything that a descriptor requests.
std::set<std::pair<CompletionKind, ProcessId>> due(const Descriptor& descriptor) {
  if (descriptor.verb == Verb::get) return {{CompletionKind::got, descriptor.source}};
  std::set<std::pair<CompletionKind, ProcessId>> kinds;
  if (descriptor.want_local) kinds.emplace(CompletionKind::sent, descriptor.source);
  if (descriptor.want_remote) kinds.emplace(CompletionKind::remote_done, descriptor.source);
  if (descriptor.verb == Verb::send || descriptor.notify_target)
    kinds.emplace(CompletionKind::arrived, descriptor.target);
  return kinds;
}

TEST_P(CardContract, EveryDescriptorCompletesExactlyOnceWithTheRightKinds) {
  RandomStream random(5, 0);
  std::map<test::MessageName, std::pair<Descriptor, Time>> posted;
  Time when;
  for (std::uint64_t message = 0; message < drawn_messages; ++message) {
    when += Time::from_ps(static_cast<std::int64_t>(random.below(400'000)));
    const Descriptor descriptor = random_descriptor(random, message);
    post(when, descriptor);
    posted.emplace(test::MessageName{descriptor.source, message}, std::pair{descriptor, when});
  }
  simulation.run();

  std::map<test::MessageName, std::set<std::pair<CompletionKind, ProcessId>>> reported;
  for (const test::Record& record : recorder.records) {
    const Completion& completion = record.completion;
    const test::MessageName name{completion.source, completion.message};
    ASSERT_EQ(posted.count(name), 1U);
    EXPECT_GE(completion.time, posted.at(name).second + machine.lookahead());
    EXPECT_TRUE(reported[name].emplace(completion.kind, completion.process).second) << "reported twice";
  }
  for (const auto& [name, what] : posted) {
    EXPECT_EQ(reported[name], due(what.first)) << "message " << name.second;
    EXPECT_EQ(recorder.landed.count(name), 1U) << "message " << name.second;
  }
}

// For all verbs together or, if the card does not order them, for each verb, and for sends of each from_cpu.
TEST_P(CardContract, ArrivalsKeepTheOrderOfSourceTargetAndChannel) {
  RandomStream random(6, 0);
  const NicCapabilities card = machine.capabilities();
  for (std::uint64_t message = 0; message < drawn_messages; ++message) {
    Descriptor descriptor = random_descriptor(random, message);
    descriptor.verb = message % 2 == 0 ? Verb::send : Verb::put;
    if (descriptor.verb == Verb::send) descriptor.bytes = std::min(descriptor.bytes, card.max_send_bytes);
    descriptor.from_cpu = descriptor.from_cpu && descriptor.bytes <= card.pio_limit_bytes(descriptor.verb);
    descriptor.notify_target = true;
    // Use few pairs, so that their messages follow each other closely.
    descriptor.source %= 4;
    descriptor.target = 4 + descriptor.target % 4;
    const std::uint64_t way = descriptor.verb == Verb::put ? 0x80U : descriptor.from_cpu ? 0x40U : 0U;
    descriptor.message = message << 8U | (card.ordered_verbs ? 0U : way) | descriptor.channel;
    post(Time::from_ns(static_cast<std::int64_t>(message)), descriptor);
  }
  simulation.run();
  std::map<std::tuple<ProcessId, ProcessId, std::uint64_t>, std::uint64_t> last;
  for (const Completion& arrived : recorder.of(CompletionKind::arrived)) {
    std::uint64_t& previous = last[{arrived.source, arrived.process, arrived.message & 0xffU}];
    EXPECT_LE(previous, arrived.message);
    previous = arrived.message;
  }
  EXPECT_EQ(recorder.of(CompletionKind::arrived).size(), drawn_messages);
}

TEST_P(CardContract, MessagesWithoutPayloadArriveToo) {
  const bool gets = machine.capabilities().get;
  for (const Verb verb : {Verb::send, Verb::put, Verb::get}) {
    if (verb == Verb::get && !gets) continue;
    post(Time::zero(), {.verb = verb,
                        .source = 0,
                        .target = 2,
                        .want_local = true,
                        .want_remote = true,
                        .message = static_cast<std::uint64_t>(verb)});
  }
  simulation.run();
  EXPECT_EQ(recorder.of(CompletionKind::arrived).size(), 2U);
  EXPECT_EQ(recorder.of(CompletionKind::sent).size(), 2U);
  EXPECT_EQ(recorder.of(CompletionKind::remote_done).size(), 2U);
  EXPECT_EQ(recorder.of(CompletionKind::got).size(), gets ? 1U : 0U);
}

TEST_P(CardContract, ManySendersToOneTargetAreHeldBackAndNothingIsLost) {
  const auto messages = static_cast<std::uint64_t>(test::drawn_load(20));
  for (const Verb verb : {Verb::send, Verb::put}) {
    const std::int64_t bytes = verb == Verb::send
                                   ? std::min<std::int64_t>(3000, machine.capabilities().max_send_bytes)
                                   : at_most(3000);
    const Time when = simulation.now();
    for (std::uint64_t message = 0; message < messages; ++message) {
      for (ProcessId source = 2; source < processes; ++source) {
        post(when, {.verb = verb,
                    .source = source,
                    .target = 0,
                    .bytes = bytes,
                    .message = message << 1U | static_cast<std::uint64_t>(verb)});
      }
    }
    simulation.run();
  }
  EXPECT_EQ(recorder.of(CompletionKind::arrived).size(), 2 * messages * (processes - 2));
}

TEST_P(CardContract, ProcessesThatShareACardShareItFairly) {
  constexpr std::uint64_t messages = 50;
  for (std::uint64_t message = 0; message < messages; ++message) {
    for (const ProcessId source : {ProcessId{0}, ProcessId{1}}) {
      post(Time::from_ns(static_cast<std::int64_t>(message)),
           {.verb = verb_for(machine.capabilities(), at_most(4000)),
            .source = source,
            .target = 2 + source,
            .bytes = at_most(4000),
            .message = message});
    }
  }
  simulation.run();
  std::array<Time, 2> last;
  for (const Completion& arrived : recorder.of(CompletionKind::arrived)) last[arrived.source] = arrived.time;
  const std::int64_t difference = last[0].ps() - last[1].ps();
  EXPECT_LT(std::abs(difference), last[0].ps() / 20);
}

TEST_P(CardContract, SentIsReportedInTheOrderOfTheCard) {
  const std::int64_t most = std::min<std::int64_t>(100'000, machine.capabilities().max_send_bytes);
  const std::size_t arrived = GetParam().sent_is_acknowledged ? 0 : 1;
  for (const auto& [verb, bytes] : {std::pair{Verb::send, most}, std::pair{Verb::put, at_most(100'000)}}) {
    recorder.records.clear();
    post(simulation.now(), {.verb = verb,
                            .source = 0,
                            .target = 31,
                            .want_local = true,
                            .want_remote = true,
                            .bytes = bytes,
                            .message = static_cast<std::uint64_t>(verb)});
    simulation.run();
    ASSERT_EQ(recorder.records.size(), 3U);
    EXPECT_EQ(recorder.records[1 - arrived].completion.kind, CompletionKind::sent);
    EXPECT_EQ(recorder.records[arrived].completion.kind, CompletionKind::arrived);
    EXPECT_EQ(recorder.records[2].completion.kind, CompletionKind::remote_done);
  }
}

TEST_P(CardContract, TheSamePostsGiveTheSameTimes) {
  const auto run = [] {
    Simulation own;
    Machine again(own, GetParam().machine(), placement());
    Recorder sink(own);
    TraceHash hash;
    own.attach_trace(&hash);
    again.set_sink(sink);
    sink.empties_mailboxes_of(again);
    const auto messages = static_cast<std::uint64_t>(test::drawn_load(500));
    for (std::uint64_t message = 0; message < messages; ++message) {
      const auto source = static_cast<ProcessId>(message % processes);
      const auto bytes = static_cast<std::int64_t>(message * 6500 / messages);
      const NicCapabilities card = again.capabilities();
      const Verb verb = verb_of(card, message);
      const std::int64_t fitting = std::min(bytes, card.max_message_bytes);
      post(again, Time::from_ns(static_cast<std::int64_t>(message / 50)),
           {.verb = verb == Verb::send ? verb_for(card, fitting) : verb,
            .source = source,
            .target = (source * 7 + 3) % processes,
            .want_remote = true,
            .bytes = fitting,
            .message = message});
    }
    own.run();
    EXPECT_GT(hash.count(), sink.records.size());
    return std::pair{sink.records, hash.value()};
  };
  EXPECT_TRUE(run() == run());
}

TEST_P(CardContract, UnsupportedRequestsAreRefusedByName) {
  const NicCapabilities card = machine.capabilities();
  const auto message_of = [&](const Descriptor& descriptor) -> std::string {
    try {
      machine.post(Time::zero(), descriptor);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message_of({.source = 0, .target = processes}).find("descriptor.target = 32"), std::string::npos);
  EXPECT_NE(message_of({.target = 2, .channel = static_cast<std::uint16_t>(card.channels + 1)})
                .find("descriptor.channel"),
            std::string::npos);
  EXPECT_NE(message_of({.target = 2, .bytes = card.max_message_bytes + 1}).find("descriptor.bytes"),
            std::string::npos);
  EXPECT_NE(message_of({.target = 2, .bytes = card.max_send_bytes + 1}).find("descriptor.bytes"),
            std::string::npos);
  if (card.max_pio_put_bytes < card.max_pio_bytes) {
    EXPECT_NE(
        message_of({.verb = Verb::put, .target = 2, .from_cpu = true, .bytes = card.max_pio_put_bytes + 1})
            .find("CPU"),
        std::string::npos);
  }
  if (card.max_pio_bytes < card.max_send_bytes) {
    EXPECT_NE(message_of({.target = 2, .from_cpu = true, .bytes = card.max_pio_bytes + 1}).find("CPU"),
              std::string::npos);
  }
  if (!card.gpu_memory) {
    EXPECT_NE(message_of({.target = 2, .local_memory = Memory::gpu}).find("descriptor.memory = gpu"),
              std::string::npos);
  }
  for (const Descriptor& nowhere :
       {Descriptor{.target = 2, .local_memory = Memory::none},
        Descriptor{.target = 2, .remote_memory = Memory::none},
        Descriptor{.verb = Verb::put, .target = 2, .remote_memory = Memory::none}}) {
    EXPECT_NE(message_of(nowhere).find("_memory = none"), std::string::npos);
  }
  EXPECT_NE(message_of({.target = 2, .bytes = -1}).find("descriptor.bytes = -1"), std::string::npos);
  if (!card.get) {
    const std::string refused = message_of({.verb = Verb::get, .target = 2});
    EXPECT_NE(refused.find("descriptor.verb = get"), std::string::npos);
    EXPECT_NE(refused.find("it has no get"), std::string::npos);
  }
  if (!card.needs_credit) {
    EXPECT_NE(message_of({.verb = Verb::credit, .target = 2}).find("descriptor.verb = credit"),
              std::string::npos);
  }
}

// Dropped puts are mixed with others that land, in the same queues.
TEST_P(CardContract, ADroppedPutIsSentAndLandsNowhere) {
  if (!machine.capabilities().drops) GTEST_SKIP() << "the card supports no dropped puts";
  constexpr std::uint64_t messages = 60;
  for (std::uint64_t message = 0; message < messages; ++message) {
    const bool is_dropped = message % 2 == 0;
    post(Time::zero(), {.verb = Verb::put,
                        .source = 0,
                        .target = 2,
                        .want_local = true,
                        .notify_target = !is_dropped,
                        .remote_memory = is_dropped ? Memory::none : Memory::host,
                        .bytes = static_cast<std::int64_t>(message) * 500,
                        .message = message});
  }
  simulation.run();
  EXPECT_EQ(recorder.of(CompletionKind::sent).size(), messages);
  EXPECT_EQ(recorder.of(CompletionKind::arrived).size(), messages / 2);
  EXPECT_EQ(recorder.landed.size(), messages / 2);
  for (const auto& [name, when] : recorder.landed) EXPECT_EQ(name.second % 2, 1U);
}

// While data comes to the target from two sides and leaves it, so that its bus is behind.
TEST_P(CardContract, AnEmptyPutDoesNotOvertakeTheDataBeforeIt) {
  const NicCapabilities card = machine.capabilities();
  if (!card.put || card.needs_credit) GTEST_SKIP() << "the card has no put without the target's consent";
  constexpr ProcessId target = 2;
  constexpr std::array<ProcessId, 5> sources = {0, 4, 6, 10, 20};
  constexpr std::uint64_t messages = 10;
  for (const ProcessId source : sources) {
    for (std::uint64_t message = 0; message < messages; ++message) {
      const Descriptor data = {
          .verb = Verb::put, .source = source, .target = target, .bytes = at_most(3072), .message = message};
      Descriptor back = data;
      std::swap(back.source, back.target);
      back.message += source * messages;
      post(Time::zero(), data);
      post(Time::zero(), back);
    }
    post(Time::zero(),
         {.verb = Verb::put, .source = source, .target = target, .want_remote = true, .message = messages});
  }
  simulation.run();
  const auto done = recorder.of(CompletionKind::remote_done);
  ASSERT_EQ(done.size(), sources.size());
  for (const Completion& completion : done) {
    const Time empty = recorder.landed.at({completion.process, messages});
    for (std::uint64_t message = 0; message < messages; ++message)
      EXPECT_LE(recorder.landed.at({completion.process, message}), empty);
  }
}

TEST_P(CardContract, MessagesThatNeedCreditWaitForItAndAreNotLost) {
  const NicCapabilities card = machine.capabilities();
  constexpr std::uint64_t messages = 60;
  for (const ProcessId target : {ProcessId{2}, ProcessId{17}}) {  // a neighbour of process 0, and a stranger
    for (std::uint64_t message = 0; message < messages; ++message) {
      machine.post(Time::zero(), {.verb = message % 2 == 0 ? Verb::send : Verb::put,
                                  .source = 0,
                                  .target = target,
                                  .bytes = 500,
                                  .message = target * messages + message});
    }
  }
  simulation.run();
  EXPECT_EQ(recorder.of(CompletionKind::arrived).size(), card.needs_credit ? 0 : 2 * messages);
  if (!card.needs_credit) return;
  const Time begin = simulation.now();
  for (const ProcessId target : {ProcessId{2}, ProcessId{17}}) {
    for (std::uint64_t message = 0; message < messages; ++message) {
      machine.post(begin, {.verb = Verb::credit, .source = target, .target = 0, .bytes = 500});
    }
  }
  simulation.run();
  EXPECT_EQ(recorder.of(CompletionKind::arrived).size(), 2 * messages);
}

// Another card in the node, of a network of its own, changes nothing: neither order nor time.
TEST_P(CardContract, ASecondRailDoesWhatTheCardDoesAlone) {
  const MachineDescription alone = GetParam().machine();
  MachineDescription twice = alone;
  twice.rails.push_back({.name = "second",
                         .network = alone.network,
                         .bus = alone.host.bus,
                         .nic = alone.nic,
                         .same_node = alone.same_node,
                         .card_software = alone.card_software,
                         .mpi_software = alone.mpi_software});
  Simulation other_simulation;
  Machine both(other_simulation, twice, placement());
  Recorder of_both(other_simulation);
  both.set_sink(of_both);
  of_both.empties_mailboxes_of(both, 1);
  RandomStream random(11, 0);
  for (std::uint64_t message = 0; message < 300; ++message) {
    Descriptor descriptor = random_descriptor(random, message);
    const Time when = Time::from_ns(static_cast<std::int64_t>(40 * message));
    post(when, descriptor);
    descriptor.rail = 1;
    post(both, when, descriptor);
  }
  simulation.run();
  other_simulation.run();
  EXPECT_FALSE(recorder.records.empty());
  EXPECT_EQ(of_both.records, recorder.records);
  const std::vector<LinkUse> links = machine.link_use();
  const std::vector<LinkUse> of_rails = both.link_use();
  ASSERT_EQ(of_rails.size(), 2 * links.size());
  for (std::size_t link = 0; link < links.size(); ++link) {
    EXPECT_EQ(of_rails[link].packets, 0U);
    const LinkUse& second = of_rails[both.first_link(1) + link];
    EXPECT_EQ(second.name, "second: " + links[link].name);
    EXPECT_EQ(second.packets, links[link].packets);
    EXPECT_EQ(second.busy, links[link].busy);
  }
}

INSTANTIATE_TEST_SUITE_P(Cards, CardContract, testing::ValuesIn(test::contract_cards()),
                         [](const auto& card) { return card.param.name; });
INSTANTIATE_TEST_SUITE_P(LoopBack, CardContract, testing::ValuesIn(test::loop_back_cards()),
                         [](const auto& card) { return card.param.name; });

}  // namespace
}  // namespace apenet
