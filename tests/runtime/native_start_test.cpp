// Ranks without MPI: virtual time begins for a process when it joins the network, and not for processes that
// do not.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ranks.hpp"

namespace apenet::test {
namespace {

constexpr std::uint64_t native_rounds = 20;

Ran run_natively(const std::vector<RankProgram>& programs) {
  return run_ranks(
      test::round_ideal(), programs, {}, [] { return false; }, Begin::by_the_program);
}

void join(ipc::Client& client) {
  client.charge(5000);  // time charged before the start does not count
  if (!client.join() || !client.started() || client.clock_ps() != 0) _exit(8);
  client.block().identity.used_network = 1;
}

// Exchanges messages, and ends without leaving explicitly.
RankProgram player(bool first, useconds_t pause_us) {
  return [first, pause_us](ipc::Client& client) {
    usleep(pause_us);
    join(client);
    for (std::uint64_t round = 0; round < native_rounds; ++round) {
      if (first) send_word(client, 1, round);
      if (receive_word(client) != round) _exit(9);
      if (!first) send_word(client, 0, round);
    }
  };
}

TEST(NativeStart, TimeBeginsAtZeroWhicheverRankComesFirst) {
  const Ran a = run_natively({player(true, 0), player(false, 50'000)});
  const Ran b = run_natively({player(true, 50'000), player(false, 0)});
  ASSERT_EQ(a.report.outcome, SessionReport::Outcome::completed) << a.report.message;
  ASSERT_EQ(b.report.outcome, SessionReport::Outcome::completed) << b.report.message;
  EXPECT_EQ(a.report.exit_status, 0);
  EXPECT_EQ(a.report.messages, 2 * native_rounds);
  EXPECT_EQ(a.report.virtual_ps, static_cast<std::int64_t>(2 * native_rounds) * (1'000'000 + 8'000));
  EXPECT_EQ(a.report.trace_hash, b.report.trace_hash);
  EXPECT_EQ(a.report.virtual_ps, b.report.virtual_ps);
  EXPECT_TRUE(a.report.warnings.empty());
}

TEST(NativeStart, MoreThanARingOfRequestsBeforeTheOthersJoin) {
  constexpr std::uint32_t many = 3 * ipc::request_ring;
  const auto sender = [](ipc::Client& client) {
    join(client);
    for (std::uint64_t word = 0; word < many; ++word) send_word(client, 1, word);
  };
  const auto receiver = [](ipc::Client& client) {
    usleep(50'000);
    join(client);
    for (std::uint64_t word = 0; word < many; ++word) {
      if (receive_word(client) != word) _exit(9);
    }
  };
  const Ran ran = run_natively({sender, receiver});
  ASSERT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
  EXPECT_EQ(ran.report.messages, many);
}

TEST(NativeStart, AProcessThatOpensNothingDoesNotBlockOthers) {
  const auto other = [](ipc::Client& /*client*/) {};
  const Ran ran = run_natively({player(true, 0), player(false, 0), other});
  ASSERT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
  EXPECT_EQ(ran.report.messages, 2 * native_rounds);
}

TEST(NativeStart, ProgramsThatOpenNothingEndWithTheirOwnStatus) {
  const auto nothing = [](ipc::Client& /*client*/) {};
  const Ran ran = run_natively({nothing, nothing});
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
  EXPECT_EQ(ran.report.exit_status, 0);
  ASSERT_EQ(ran.report.warnings.size(), 1U);
  EXPECT_NE(ran.report.warnings[0].find("no rank opened an endpoint"), std::string::npos);
}

TEST(NativeStart, JoiningDuringMpiInitDoesNotBeginTime) {
  const auto program = [](ipc::Client& client) {
    ++client.block().identity.initialising;
    client.charge(7000);
    if (!client.join() || client.started()) _exit(8);
    --client.block().identity.initialising;
    client.block().identity.used_network = 1;
    client.start();
    if (!client.started() || client.clock_ps() != 0) _exit(9);
    leave(client);
    if (client.join()) _exit(10);
  };
  const Ran ran = run_natively({program});
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
}

// A library polls while it waits for its process manager, as often as the host lets it.
TEST(NativeStart, PollsBeforeTimeBeginsDoNotMakeALaterOneWait) {
  constexpr int polls_before_waiting = 16;
  const auto receiver = [](int polls) {
    return [polls](ipc::Client& client) {
      ++client.block().identity.initialising;
      client.join();
      for (int i = 0; i < polls; ++i) {
        if (client.poll() != nullptr) _exit(8);
      }
      --client.block().identity.initialising;
      client.block().identity.used_network = 1;
      client.start();
      if (client.poll() != nullptr || client.clock_ps() != 0) _exit(9);
      receive_word(client);
      leave(client);
    };
  };
  const auto sender = [](ipc::Client& client) {
    client.block().identity.used_network = 1;
    client.start();
    send_word(client, 0, 0);
    leave(client);
  };
  for (const int polls : {0, polls_before_waiting - 1}) {
    const Ran ran = run_natively({receiver(polls), sender});
    EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
    EXPECT_EQ(ran.report.exit_status, 0) << polls;
  }
}

TEST(NativeStart, MpiAfterTheProgramsOwnEndpointKeepsItsClock) {
  const auto program = [](ipc::Client& client) {
    join(client);
    client.charge(1000);
    client.start();
    if (client.clock_ps() < 1000) _exit(9);
    leave(client);
  };
  const Ran ran = run_natively({program, program});
  // No message was sent, as if MPI bypassed the network.
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::failed);
  EXPECT_EQ(ran.report.exit_status, 2) << ran.report.message;
}

TEST(NativeStart, ARankThatWaitsForALeftRankIsADeadlock) {
  const auto waits = [](ipc::Client& client) {
    join(client);
    receive_word(client);
  };
  const auto leaves = [](ipc::Client& client) { join(client); };
  const Ran ran = run_natively({waits, leaves});
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::deadlock) << ran.report.message;
}

}  // namespace
}  // namespace apenet::test
