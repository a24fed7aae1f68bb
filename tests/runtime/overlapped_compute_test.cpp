// Overlapped compute: nothing that anyone sees depends on it.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <csignal>
#include <new>
#include <random>

#include "ranks.hpp"
#include "runtime/shim/call_path.hpp"
#include "support/forbidden_memory.hpp"

namespace apenet::test {
namespace {

constexpr std::int64_t us = 1'000'000;  // ps

SessionOptions charging_a_profile() {
  SessionOptions options;
  options.compute = ipc::ComputeMode::profile;
  return options;
}

// A flag that forked ranks share outside the simulation.
class Flag {
 public:
  void raise() { raised_->store(1); }
  // Returns false if nobody raises it for a long time.
  [[nodiscard]] bool await() const {
    for (int polls = 0; polls < 100'000 && raised_->load() == 0; ++polls) usleep(100);
    return raised_->load() != 0;
  }

 private:
  std::atomic<int>* raised_ =
      new (mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
          std::atomic<int>{0};
};

void print_clock(ipc::Client& client, const char* what) {
  std::printf("rank %u %s %lld\n", client.rank(), what, static_cast<long long>(client.clock_ps()));
  std::fflush(stdout);
}

RankProgram sends_once(std::uint32_t target) {
  return [target](ipc::Client& client) {
    send_word(client, target, 1);
    leave(client);
  };
}

TEST(OverlappedCompute, OthersGoOnUntilTheTimeThatIsCharged) {
  Flag flag;
  const auto computes = [&](ipc::Client& client) {
    client.overlap_compute(100 * us);
    if (!flag.await()) _exit(1);
    client.attend();
    print_clock(client, "computed until");
    leave(client);
  };
  const auto receives = [&](ipc::Client& client) {
    receive_word(client);
    flag.raise();
    leave(client);
  };
  const Ran ran = run_ranks(round_ideal(), {computes, sends_once(2), receives}, charging_a_profile());
  EXPECT_EQ(ran.report.exit_status, 0) << ran.report.message;
  EXPECT_EQ(ran.output, "rank 0 computed until 100000000\n");
}

// Others may write its memory, and it would see when.
TEST(OverlappedCompute, ARankThatHasOpenedMemoryKeepsItsGrant) {
  const auto opened = [](ipc::Client& client) {
    client.regions().insert({.key = 1, .address = 4096, .length = 1, .domain = 1, .access = ipc::may_write});
    client.overlap_compute(us);
    if (client.block().grant.run.load() != ipc::Run::may_run) _exit(1);
    client.regions().erase(1, 1);
    client.overlap_compute(us);
    if (client.block().grant.run.load() == ipc::Run::may_run) _exit(2);
    client.attend();
    print_clock(client, "has");
    leave(client);
  };
  const Ran ran = run_ranks(round_ideal(), {opened, sends_once(0)}, charging_a_profile());
  EXPECT_EQ(ran.report.exit_status, 0) << ran.report.message;
  EXPECT_EQ(ran.output, "rank 0 has 2000000\n");
}

// Each rank computes, sends to a drawn rank, and takes what has come, in a drawn order. Computing takes time
// of the host, too, so that ranks come back before and after they get a grant.
RankProgram drawn_program(unsigned seed, std::uint32_t count) {
  return [seed, count](ipc::Client& client) {
    constexpr int laps = 20;
    std::mt19937 common(seed);  // the same on all ranks
    std::mt19937 own(seed * 1000 + client.rank());
    for (int lap = 0; lap < laps; ++lap) {
      const std::uint32_t shift = 1 + common() % (count - 1);
      if (own() % 3 != 0) client.overlap_compute(static_cast<std::int64_t>(own() % 20) * us / 10);
      if (own() % 8 == 0) usleep(own() % 500);
      client.attend();
      client.charge(static_cast<std::int64_t>(own() % 3) * us);
      send_word(client, (client.rank() + shift) % count, static_cast<std::uint64_t>(lap));
      if (own() % 2 == 0) print_clock(client, "sent at");
      receive_word(client);
    }
    print_clock(client, "ends at");
    leave(client);
  };
}

Ran run_drawn(unsigned seed, const SessionOptions& options) {
  constexpr std::uint32_t count = 5;
  return run_ranks(round_ideal(), std::vector<RankProgram>(count, drawn_program(seed, count)), options);
}

TEST(OverlappedCompute, TheSameHappensAsWithoutOverlap) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    const Ran overlapped = run_drawn(seed, charging_a_profile());
    const Ran again = run_drawn(seed, charging_a_profile());
    const Ran in_turn = run_drawn(seed, {});
    EXPECT_EQ(overlapped.report.exit_status, 0) << overlapped.report.message;
    EXPECT_EQ(overlapped.report.trace_hash, in_turn.report.trace_hash) << seed;
    EXPECT_EQ(overlapped.report.virtual_ps, in_turn.report.virtual_ps) << seed;
    EXPECT_EQ(overlapped.output, again.output) << seed;
  }
}

// Where the ranks themselves have to copy, they compute with a grant.
TEST(OverlappedCompute, TheSameIsPrintedWhereTheHostAllowsNoOverlap) {
  const auto compares = [](unsigned seed) {
    const Ran overlapped = run_drawn(seed, charging_a_profile());
    forbid_the_memory_of_others();
    const Ran in_turn = run_drawn(seed, charging_a_profile());
    if (overlapped.report.exit_status != 0 || overlapped.output.empty()) _exit(4);
    if (overlapped.report.trace_hash != in_turn.report.trace_hash) _exit(5);
    _exit(overlapped.output == in_turn.output ? 0 : 6);
  };
  for (unsigned seed = 0; seed < 4; ++seed) EXPECT_EXIT(compares(seed), testing::ExitedWithCode(0), "");
}

// What a rank prints while it computes belongs to the time at which it began.
TEST(OverlappedCompute, LinesKeepTheirOrder) {
  Flag flag;
  const auto computes = [&](ipc::Client& client) {
    client.overlap_compute(100 * us);
    if (!flag.await()) _exit(1);
    std::printf("before\n");
    std::fflush(stdout);
    client.attend();
    leave(client);
  };
  const auto receives = [&](ipc::Client& client) {
    receive_word(client);
    std::printf("after\n");
    std::fflush(stdout);
    flag.raise();
    leave(client);
  };
  const Ran ran = run_ranks(round_ideal(), {computes, sends_once(2), receives}, charging_a_profile());
  EXPECT_EQ(ran.output, "before\nafter\n");
}

RankProgram plays(std::uint32_t partner) {
  return [partner](ipc::Client& client) {
    for (;;) {
      if (client.rank() < partner) send_word(client, partner, 1);
      receive_word(client);
      print_clock(client, "at");
      if (client.rank() > partner) send_word(client, partner, 1);
    }
  };
}

// Whether the simulator learns of the end early or late, others get as far.
TEST(OverlappedCompute, ARankThatEndsMeanwhileEndsTheRunAtOneTime) {
  const auto run = [](std::int64_t computes_ps, unsigned lives_ms) {
    const auto dies = [=](ipc::Client& client) {
      client.overlap_compute(computes_ps);
      usleep(lives_ms * 1000);
      raise(SIGKILL);
    };
    return run_ranks(round_ideal(), {dies, plays(2), plays(1)}, charging_a_profile());
  };
  // Some of the others' times are closer to the end of its computation than the lookahead.
  for (std::int64_t computes_ps = 20 * us; computes_ps < 21 * us; computes_ps += us / 8) {
    const Ran early = run(computes_ps, 0);
    EXPECT_EQ(early.report.exit_status, 128 + SIGKILL);
    EXPECT_NE(early.output, "");
    const Ran late = run(computes_ps, 5);
    EXPECT_EQ(late.report.exit_status, early.report.exit_status) << computes_ps;
    EXPECT_EQ(late.report.messages, early.report.messages) << computes_ps;
    EXPECT_EQ(late.output, early.output) << computes_ps;
  }
}

// The failure of one rank waits until the others, which are overlapped, have printed.
TEST(OverlappedCompute, AFailureElsewhereLetsARankFinishItsComputation) {
  const auto computes = [](ipc::Client& client) {
    client.overlap_compute(50 * us);
    usleep(20'000);
    std::printf("computed\n");
    std::fflush(stdout);
    client.attend();
    std::printf("went on\n");
    std::fflush(stdout);
    receive_word(client);
  };
  const auto fails = [](ipc::Client& client) {
    receive_word(client);
    _exit(3);
  };
  const Ran ran = run_ranks(round_ideal(), {computes, sends_once(2), fails}, charging_a_profile());
  EXPECT_EQ(ran.report.exit_status, 3);
  EXPECT_EQ(ran.output, "computed\n");
}

std::uint64_t call_path(std::initializer_list<std::uint64_t> calls) {
  shim::CallPath made;
  for (const std::uint64_t call : calls) made.add(call * 0x9e3779b97f4a7c15U);
  return made.hash();
}

TEST(CallPath, LoopsOverOneOrTwoCallsCountOnceWhenTheyHaveEnded) {
  EXPECT_EQ(call_path({1, 2, 3, 2, 3, 4}), call_path({1, 2, 3, 2, 3, 2, 3, 4}));
  EXPECT_EQ(call_path({1, 2, 2, 2, 4}), call_path({1, 2, 2, 2, 2, 2, 4}));
  EXPECT_NE(call_path({1, 2, 3, 2, 3}), call_path({1, 2, 3, 2, 3, 2, 3}));
  EXPECT_NE(call_path({1, 2, 2, 2}), call_path({1, 2, 2, 2, 2}));
  EXPECT_NE(call_path({1, 2, 2, 4}), call_path({1, 2, 4}));
  EXPECT_NE(call_path({1, 2, 3, 4}), call_path({2, 1, 3, 4}));
}

TEST(CallPath, ForgetsWhatWasLongAgo) {
  shim::CallPath one;
  shim::CallPath other;
  one.add(5);
  for (std::uint64_t call = 0; call < 64; ++call) {
    EXPECT_NE(one.hash(), other.hash()) << call;
    one.add(call * call + 7);
    other.add(call * call + 7);
  }
  EXPECT_EQ(one.hash(), other.hash());
}

}  // namespace
}  // namespace apenet::test
