// The cores of a run: claims that exclude each other, and the choice between one core and several.
#include "runtime/launch/cores.hpp"
#include "runtime/fork_with_test.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <utility>

namespace apenet::test {
namespace {

using namespace std::chrono_literals;
using Spread = CoreChoice::Spread;

// No host has this core, so no other run claims it.
std::size_t nowhere() {
  return 1'000'000 + static_cast<std::size_t>(getpid());
}

TEST(CoreClaim, ExcludesOthersUntilItsOwnerGivesItUp) {
  std::optional<CoreClaim> claim = CoreClaim::take(nowhere());
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->core(), nowhere());
  EXPECT_TRUE(CoreClaim::is_taken(nowhere()));
  EXPECT_FALSE(CoreClaim::take(nowhere()));
  std::optional<CoreClaim> moved = std::move(claim);
  claim.reset();
  EXPECT_TRUE(CoreClaim::is_taken(nowhere()));
  moved.reset();
  EXPECT_FALSE(CoreClaim::is_taken(nowhere()));
  EXPECT_TRUE(CoreClaim::take(nowhere()));
}

TEST(CoreClaim, EndsWithItsOwner) {
  const std::size_t core = nowhere();
  const pid_t owner = test::fork_with_test();
  if (owner == 0) {
    const std::optional<CoreClaim> claim = CoreClaim::take(core);
    if (claim) raise(SIGKILL);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(owner, &status, 0), owner);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(CoreClaim::is_taken(core));
}

TEST(CoreChoice, RanksThatComputeRunSideBySide) {
  CoreChoice choice;
  const RoundsTaken computes{.passed = 25ms, .ran = 24ms, .rounds = 5, .wakes = 20};
  EXPECT_TRUE(choice.may_change(computes, 4));
  EXPECT_EQ(choice.decide(computes, 4, 4), Spread::several_cores);
  // Side by side, the same work takes less time.
  const RoundsTaken beside{.passed = 25ms, .ran = 20ms, .rounds = 15, .wakes = 60};
  EXPECT_EQ(choice.decide(beside, 4, 4), Spread::several_cores);
}

// A round of a rank that computes alone gains nothing, however long it is.
TEST(CoreChoice, RanksThatTakeTurnsStayOnOneCore) {
  CoreChoice choice;
  const RoundsTaken alone{.passed = 25ms, .ran = 24ms, .rounds = 2, .wakes = 2};
  EXPECT_EQ(choice.decide(alone, 1, 8), Spread::one_core);
}

TEST(CoreChoice, RanksThatHandOverStayOnOneCore) {
  CoreChoice choice;
  const RoundsTaken pings{.passed = 25ms, .ran = 10ms, .rounds = 3000, .wakes = 3000};
  EXPECT_FALSE(choice.may_change(pings, 64));
  // Each round wakes many ranks, but for a moment only.
  const RoundsTaken halo{.passed = 25ms, .ran = 15ms, .rounds = 150, .wakes = 4000};
  EXPECT_EQ(choice.decide(halo, 20, 2), Spread::one_core);
}

TEST(CoreChoice, ReturnsToOneCoreAndThenWaitsBeforeTheNextChange) {
  CoreChoice choice;
  const RoundsTaken computes{.passed = 25ms, .ran = 24ms, .rounds = 5, .wakes = 20};
  const RoundsTaken pings{.passed = 25ms, .ran = 20ms, .rounds = 500, .wakes = 500};
  choice.decide(computes, 4, 4);
  ASSERT_EQ(choice.decide(pings, 0.5, 4), Spread::one_core);
  int polls = 1;
  while (choice.decide(computes, 4, 4) == Spread::one_core) ++polls;
  EXPECT_EQ(polls, 4);  // 100 ms
  choice.decide(pings, 0.5, 4);
  for (polls = 1; choice.decide(computes, 4, 4) == Spread::one_core;) ++polls;
  EXPECT_EQ(polls, 8);
}

TEST(Cores, OneCoreWhileTheRunLasts) {
  cpu_set_t before{};
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  {
    Cores cores(CoreUse::one);
    cores.begin({0});  // a rank without a process
    cpu_set_t during{};
    sched_getaffinity(0, sizeof during, &during);
    EXPECT_EQ(CPU_COUNT(&during), 1);
    cores.note_round(1);
    cores.note_all_wait();
    cores.adapt({0});
  }
  cpu_set_t after{};
  sched_getaffinity(0, sizeof after, &after);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
}  // namespace apenet::test
