// Replay in closed form on the ideal machine: 1 us of latency, one byte a nanosecond.
#include "runtime/scripted/goal_replay.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <tuple>

#include "support/machines.hpp"

namespace apenet {
namespace {

constexpr std::int64_t header = 24;
constexpr std::int64_t ready = 40;
constexpr std::int64_t clear = 56;

// The card takes payload from the CPU on this machine, so that no eager message is copied by the sender.
MachineDescription machine_with_costs() {
  MachineDescription machine = test::round_ideal();
  machine.host.copy_bytes_per_second = 1'000'000'000;
  machine.mpi_software.send = Time::from_ns(100);
  machine.mpi_software.receive = Time::from_ns(200);
  machine.mpi_software.after_receive = Time::from_ns(400);
  machine.mpi_software.completion = Time::from_ns(50);
  machine.mpi_software.rendezvous = Time::from_ns(30);
  machine.mpi_software.publish = Time::from_ns(7);
  machine.mpi_software.eager_limit_bytes = 4096;
  return machine;
}

ReplayReport replay(const std::string& text, const MachineDescription& machine = machine_with_costs()) {
  const GoalSchedule schedule = parse_goal(text, "t.goal");
  std::vector<NodeId> nodes;
  for (NodeId node = 0; node < schedule.ranks.size(); ++node) nodes.push_back(node);
  return replay_goal(machine, nodes, schedule);
}

std::string deadlock(const std::string& text) {
  try {
    replay(text);
  } catch (const ReplayDeadlock& error) {
    return error.what();
  }
  return "no deadlock";
}

TEST(Replay, AnEagerMessageCostsWhatTheProviderCharges) {
  const ReplayReport report =
      replay("num_ranks 2\nrank 0 {\nsend 1000b to 1\n}\nrank 1 {\nrecv 1000b from 0\n}\n");
  EXPECT_EQ(report.finish[0], Time::from_ns(100));
  EXPECT_EQ(report.finish[1], Time::from_ns(100 + 1000 + header + 1000 + 200 + 1000));
  EXPECT_EQ(report.ranks[1].waited, Time::from_ns(100 + 1000 + header + 1000));
  EXPECT_EQ(report.messages, 1U);
  EXPECT_EQ(report.bytes, 1000U + header);
}

TEST(Replay, AboveTheLimitItIsARendezvous) {
  const ReplayReport report =
      replay("num_ranks 2\nrank 0 {\nsend 10000b to 1\n}\nrank 1 {\nrecv 10000b from 0\n}\n");
  const std::int64_t announced = 30 + 100 + 1000 + ready;
  const std::int64_t cleared = announced + 200 + 30 + 7 + 30 + 100 + 1000 + clear;
  const std::int64_t put = cleared + 200 + 30 + 100;
  EXPECT_EQ(report.finish[1], Time::from_ns(put + 10000 + 1000 + 50));
  EXPECT_EQ(report.finish[0], Time::from_ns(put + 1000 + 10000 + 50))
      << "the ideal card's doorbell takes 1 us";
  EXPECT_EQ(report.messages, 3U);
}

TEST(Replay, TheLogHasOperationsAndWaits) {
  const GoalSchedule schedule = parse_goal(
      "num_ranks 2\nrank 0 {\na: calc 500\nb: send 1000b to 1\nb requires a\n}\nrank 1 {\nrecv 1000b from "
      "0\n}\n",
      "t.goal");
  ReplayLog log;
  const ReplayReport report = replay_goal(machine_with_costs(), {0, 1}, schedule, {}, &log);
  const std::int64_t sent = 500 + 100;
  EXPECT_EQ(log.began[0], (std::vector<Time>{Time::zero(), Time::from_ns(500)}));
  EXPECT_EQ(log.ended[0], (std::vector<Time>{Time::from_ns(500), Time::from_ns(sent)}));
  EXPECT_EQ(log.began[1], (std::vector<Time>{Time::zero()}));
  EXPECT_EQ(log.ended[1], (std::vector<Time>{report.finish[1]}));
  ASSERT_EQ(log.waits.size(), 1U);
  const WaitRecord& wait = log.waits[0];
  EXPECT_EQ(wait.rank, 1U);
  EXPECT_EQ(wait.source, 0U);
  EXPECT_EQ(wait.operation, 1U);
  EXPECT_EQ(wait.from, Time::zero());
  EXPECT_EQ(wait.posted, Time::from_ns(sent));
  EXPECT_EQ(wait.until, Time::from_ns(sent + 1000 + header + 1000));
  EXPECT_EQ(wait.role, MessageRole::eager);
  EXPECT_TRUE(wait.is_arrival);
}

TEST(Replay, TheLogNamesTheMessagesOfARendezvous) {
  const GoalSchedule schedule =
      parse_goal("num_ranks 2\nrank 0 {\nsend 10000b to 1\n}\nrank 1 {\nrecv 10000b from 0\n}\n", "t.goal");
  ReplayLog log;
  (void)replay_goal(machine_with_costs(), {0, 1}, schedule, {}, &log);
  std::vector<std::tuple<ProcessId, MessageRole, bool>> waits;
  for (const WaitRecord& wait : log.waits) waits.emplace_back(wait.rank, wait.role, wait.is_arrival);
  using enum MessageRole;
  EXPECT_EQ(waits, (std::vector<std::tuple<ProcessId, MessageRole, bool>>{
                       {1, ready, true}, {0, clear, true}, {0, payload, false}, {1, payload, true}}));
}

TEST(Replay, TheDeferredCostOfAReceiveDelaysTheNextOne) {
  const ReplayReport report = replay(
      "num_ranks 2\nrank 0 {\na: send 0b to 1\nb: send 0b to 1\nb requires a\n}\n"
      "rank 1 {\na: recv 0b from 0\nb: recv 0b from 0\nb requires a\n}\n");
  EXPECT_EQ(report.finish[1], Time::from_ns(100 + 1000 + header + 200 + 400 + 200));
}

TEST(Replay, WhatComesBeforeItsReceiveCostsWhenItIsWanted) {
  const ReplayReport report = replay(
      "num_ranks 2\nrank 0 {\nsend 10b to 1\n}\n"
      "rank 1 {\na: calc 50000\nb: recv 10b from 0\nb requires a\n}\n");
  EXPECT_EQ(report.finish[1], Time::from_ns(50000 + 200 + 10));
  EXPECT_EQ(report.ranks[1].computed, Time::from_ns(50000));
  EXPECT_EQ(report.ranks[1].waited, Time::zero());
}

TEST(Replay, RequiresWaitsForTheEndAndIrequiresForTheStart) {
  const std::string receives = "rank 1 {\na: recv 8b from 0\nb: calc 100\nb ";
  const std::string sends = "num_ranks 2\nrank 0 {\na: calc 9000\nb: send 8b to 1\nb requires a\n}\n";
  const Time arrived = Time::from_ns(9000 + 100 + 1000 + header + 8 + 200 + 8);
  EXPECT_EQ(replay(sends + receives + "requires a\n}\n").finish[1], arrived + Time::from_ns(100));
  EXPECT_EQ(replay(sends + receives + "irequires a\n}\n").finish[1], arrived);
}

TEST(Replay, OneCpuDoesOneThingAfterTheOtherAndTwoDoNot) {
  EXPECT_EQ(replay("num_ranks 1\nrank 0 {\ncalc 300\ncalc 500\n}").finish[0], Time::from_ns(800));
  EXPECT_EQ(replay("num_ranks 1\nrank 0 {\ncalc 300\ncalc 500 cpu 1\n}").finish[0], Time::from_ns(500));
  EXPECT_EQ(replay("num_ranks 1\nrank 0 {\na: calc 300\nb: calc 500 cpu 1\nb requires a\n}").finish[0],
            Time::from_ns(800));
  EXPECT_EQ(replay("num_ranks 1\nrank 0 {\nx: calc 100\na: calc 300\nb: calc 500 cpu 1\na requires x\n"
                   "b irequires a\n}")
                .finish[0],
            Time::from_ns(100 + 500));
}

TEST(Replay, PostsOfSeveralCpusGoInTheOrderOfTheirTimes) {
  // The second CPU's message is posted first, although it comes later in the file.
  const ReplayReport report = replay(
      "num_ranks 2\nrank 0 {\na: calc 9000\nb: send 8b to 1 tag 1\nb requires a\nc: send 8b to 1 tag 2 cpu "
      "1\n}\n"
      "rank 1 {\na: recv 8b from 0 tag 2\nb: recv 8b from 0 tag 1\nb requires a\n}\n");
  EXPECT_EQ(report.finish[0], Time::from_ns(9100));
  EXPECT_EQ(report.finish[1], Time::from_ns(9100 + 1000 + header + 8 + 200 + 8));
}

TEST(Replay, WildcardsTakeWhatComesFirst) {
  const ReplayReport report = replay(
      "num_ranks 3\nrank 0 {\na: calc 5000\nb: send 1b to 2 tag 5\nb requires a\n}\nrank 1 {\nsend 2b to 2 "
      "tag 6\n}\n"
      "rank 2 {\na: recv 2b from -1 tag -1\nb: recv 1b from -1 tag 5\nb irequires a\n}\n");
  EXPECT_EQ(report.finish[2], Time::from_ns(5000 + 100 + 1000 + header + 1 + 200 + 1));
}

TEST(Replay, ALongerMessageThanItsReceiveSaysIsCounted) {
  const ReplayReport report =
      replay("num_ranks 2\nrank 0 {\nsend 100b to 1\n}\nrank 1 {\nrecv 10b from 0\n}\n");
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_NE(report.warnings[0].find("1 receives got a message longer"), std::string::npos);
}

// 64 messages of 8 pages: where all buffers are one page, the TLB misses once.
TEST(Replay, BuffersLieWhereTheTraceSays) {
  const auto trace = [](bool has_addresses) {
    std::string text[2];
    for (int i = 0; i < 64; ++i) {
      const std::string label = "m" + std::to_string(i);
      text[0] += label + ": send 65536b to 1 tag " + std::to_string(i) + "\n";
      text[1] += label + ": recv 65536b from 0 tag " + std::to_string(i);
      if (has_addresses) {
        std::ostringstream address;
        address << " // @0x" << std::hex << 0x10000000 + i * 65536;
        text[1] += address.str();
      }
      text[1] += "\n";
    }
    return "num_ranks 2\nrank 0 {\n" + text[0] + "}\nrank 1 {\n" + text[1] + "}\n";
  };
  const ReplayReport spread = replay(trace(true), test::machine("apenetplus-v5"));
  const ReplayReport alike = replay(trace(false), test::machine("apenetplus-v5"));
  EXPECT_TRUE(spread.warnings.empty());
  // Without misses the link is busy enough for a warning of its own.
  ASSERT_EQ(alike.warnings.size(), 2U);
  EXPECT_NE(alike.warnings.back().find("64 receives name no buffer address"), std::string::npos);
  EXPECT_GT(spread.finish[1], alike.finish[1]);
  EXPECT_TRUE(replay(trace(false)).warnings.empty()) << "a card that translates nothing";
  EXPECT_EQ(replay(trace(false)).finish, replay(trace(true)).finish);
}

TEST(Replay, WhoWaitsForWhatIsSaid) {
  EXPECT_EQ(
      deadlock("num_ranks 2\nrank 0 {\na: recv 8b from 1 tag 3\nb: send 8b to 1 tag 3\nb requires a\n}\n"
               "rank 1 {\na: recv 8b from 0 tag 3\nb: send 8b to 0 tag 3\nb requires a\n}\n"),
      "t.goal: 2 of 2 ranks do not come to their end:\n"
      "  rank 0 waits for ever in line 3: recv 8b from 1 tag 3; 2 operations have not ended\n"
      "  rank 1 waits for ever in line 8: recv 8b from 0 tag 3; 2 operations have not ended");
  EXPECT_EQ(deadlock("num_ranks 2\nrank 0 {\nsend 8b to 1 tag 3\n}\nrank 1 {}\n"),
            "t.goal: 1 of 2 ranks do not come to their end:\n"
            "  rank 1 has not received the message of 8 bytes, tag 3, from rank 0");
  EXPECT_NE(deadlock("num_ranks 2\nrank 0 {\nsend 100000b to 1 tag 3\n}\nrank 1 {}\n")
                .find("rank 0 waits for ever in line 3: send 100000b to 1 tag 3"),
            std::string::npos);
}

TEST(Replay, TheSameTwiceAndOnAnyMachine) {
  // All to all: rank r sends to everybody, and then receives from everybody.
  std::string text = "num_ranks 16\n";
  for (int rank = 0; rank < 16; ++rank) {
    text += "rank " + std::to_string(rank) + " {\n";
    for (int other = 0; other < 16; ++other) {
      if (other == rank) continue;
      text += "send " + std::to_string(500 * other) + "b to " + std::to_string(other) + "\n";
      text += "recv " + std::to_string(500 * rank) + "b from " + std::to_string(other) + "\n";
    }
    text += "}\n";
  }
  MachineDescription ape16 = test::machine("ape16");
  ape16.mpi_software = machine_with_costs().mpi_software;
  const ReplayReport first = replay(text, ape16);
  const ReplayReport second = replay(text, ape16);
  EXPECT_EQ(first.trace_hash, second.trace_hash);
  EXPECT_EQ(first.finish, second.finish);
  EXPECT_EQ(first.messages, 15U * (9 + 7 * 3)) << "ranks above 8 receive by rendezvous";
  EXPECT_GT(first.finish[0], replay(text).finish[0]);
}

TEST(Replay, EveryRankNeedsANode) {
  const GoalSchedule schedule = parse_goal("num_ranks 2\nrank 0 {}\nrank 1 {}", "t.goal");
  EXPECT_THROW(std::ignore = replay_goal(test::round_ideal(), {0}, schedule), std::invalid_argument);
}

// Two messages over one link and over three, in packets of 256 bytes.
TEST(Replay, PacketHopsAreCountedBeforeTheRun) {
  const GoalSchedule schedule = parse_goal(
      "num_ranks 2\nrank 0 {\nl1: send 1099511627776b to 1 tag 0\n}\n"
      "rank 1 {\nl1: recv 1099511627776b from 0 tag 0\nl2: send 257b to 0 tag 1\n}",
      "t.goal");
  EXPECT_EQ(count_packet_hops(test::machine("ape16"), {0, 1}, schedule).all, 4294967296.0 + 2);
  EXPECT_EQ(count_packet_hops(test::machine("ape16"), {0, 13}, schedule).all, 3 * 4294967298.0);
}

}  // namespace
}  // namespace apenet
