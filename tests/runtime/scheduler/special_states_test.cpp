// States that depend on the host or on long rows of polls, which no schedule of actions reaches.
#include <gtest/gtest.h>

#include "block_ranks.hpp"
#include "support/machines.hpp"

namespace apenet::test {
namespace {

constexpr std::int64_t us = ToyRank::us;

// Ranks on nodes of their own, or all on one.
class SpecialStates : public testing::Test {
 protected:
  void start(const std::vector<std::vector<Action>>& actions, bool on_one_node = false,
             const MachineDescription& machine = round_ideal()) {
    for (const auto& of_rank : actions) toys_.emplace_back(toys_.size(), actions.size(), of_rank);
    std::vector<NodeId> nodes;
    for (NodeId rank = 0; rank < toys_.size(); ++rank) nodes.push_back(on_one_node ? 0 : rank);
    blocks_.emplace(machine, nodes, toys_, HostProperties{});
    blocks_->run_granted();
    step(Scheduler::Outcome::woken);  // virtual time begins
  }
  void step(Scheduler::Outcome outcome) { ASSERT_EQ(blocks_->step(), outcome); }
  // Lets all ranks run that are granted, and takes a step.
  void go_on(Scheduler::Outcome outcome = Scheduler::Outcome::woken) {
    blocks_->run_granted();
    step(outcome);
  }
  Scheduler& scheduler() { return blocks_->scheduler(); }
  RankState state(std::uint32_t rank) { return blocks_->view().ranks[rank].state; }
  RankState state_now(std::uint32_t rank) { return blocks_->view().ranks.state_now(rank); }
  const RankTable& ranks() { return blocks_->view().ranks; }
  ipc::Grant& grant(std::uint32_t rank) { return blocks_->block(rank).grant; }
  void suspend(std::uint32_t rank) {
    ASSERT_TRUE(scheduler().suspend({rank}, [] { return true; }));
  }
  // The process asks for the grant, as Client does when it finds that the others went on without it.
  void come_back(std::uint32_t rank) {
    grant(rank).deadline_ps = blocks_->block(rank).clock.now_ps();
    grant(rank).wait = ipc::Wait::until;
    grant(rank).run = ipc::Run::waits;
  }

  std::vector<ToyRank> toys_;
  std::optional<BlockRanks> blocks_;
};

TEST_F(SpecialStates, OthersGoOnWithoutASuspendedRank) {
  using enum Action;
  start({{wait}, {sleep, sleep, post}, {sleep, wait}});
  blocks_->run(toys_[1]);
  blocks_->run(toys_[2]);
  EXPECT_EQ(ranks().waited_for(), std::vector<std::uint32_t>{0});
  EXPECT_TRUE(blocks_->view().bounds.any_could_go_on());
  suspend(0);
  EXPECT_EQ(state(0), RankState::suspended);
  EXPECT_EQ(ranks().suspended(), std::vector<std::uint32_t>{0});
  EXPECT_TRUE(ranks().waited_for().empty());
  EXPECT_FALSE(ranks().all_are_suspended());
  toys_[0].wait = ipc::Wait::finished;  // it does not run
  step(Scheduler::Outcome::woken);
  // Nobody gets a horizon beyond its own time and the lookahead: the rank may come back.
  EXPECT_EQ(blocks_->block(1).clock.horizon_ps, ranks()[1].woken_ps + blocks_->view().bounds.lookahead_ps());
  go_on();
  go_on();
  EXPECT_EQ(ranks().suspended(), std::vector<std::uint32_t>{0});
  const std::int64_t others_ps = blocks_->block(2).clock.now_ps();
  EXPECT_GT(others_ps, 3 * us);
  blocks_->run_granted();
  come_back(0);
  EXPECT_EQ(ranks().suspended(), std::vector<std::uint32_t>{});
  step(Scheduler::Outcome::woken);
  // It is granted, at the time up to which the others have acted.
  EXPECT_EQ(state(0), RankState::running);
  EXPECT_GE(blocks_->block(0).clock.now_ps(), others_ps);
  EXPECT_EQ(grant(0).run.load(), ipc::Run::may_run);
}

// Others act before the time until which it then waits.
TEST_F(SpecialStates, ASuspendedRankComesBackToWaitForALaterTime) {
  using enum Action;
  start({{wait}, {sleep, sleep, post}});
  blocks_->run(toys_[1]);
  suspend(0);
  toys_[0].wait = ipc::Wait::finished;  // it does not run
  come_back(0);
  grant(0).deadline_ps = blocks_->block(0).clock.now_ps() + 20 * us;
  step(Scheduler::Outcome::woken);
  EXPECT_EQ(state(0), RankState::awaiting_time);
  EXPECT_EQ(state(1), RankState::running);
}

// It waits in the host for what the one that has come back does next.
TEST_F(SpecialStates, TheLastRankIsSuspendedForOneThatHasComeBack) {
  using enum Action;
  start({{wait}, {sleep, wait}});
  blocks_->run(toys_[1]);
  suspend(0);
  toys_[0].wait = ipc::Wait::finished;  // it does not run
  step(Scheduler::Outcome::woken);
  EXPECT_EQ(state(1), RankState::running);
  EXPECT_TRUE(ranks().waited_for().empty());
  come_back(0);
  EXPECT_EQ(ranks().waited_for(), std::vector<std::uint32_t>{1});
  suspend(1);
  EXPECT_FALSE(ranks().all_are_suspended());
  EXPECT_EQ(ranks().suspended(), std::vector<std::uint32_t>{1});
  toys_[1].wait = ipc::Wait::finished;
  step(Scheduler::Outcome::woken);
  EXPECT_EQ(state(0), RankState::running);
}

TEST_F(SpecialStates, ASuspendedRankComesBackWhileItPolls) {
  using enum Action;
  start({{wait}, {wait}});
  blocks_->run(toys_[1]);
  suspend(0);
  toys_[0].wait = ipc::Wait::finished;
  step(Scheduler::Outcome::idle);
  for (int i = 0; i < 2000; ++i) blocks_->block(0).progress.begin_call();
  come_back(0);
  step(Scheduler::Outcome::idle);
  EXPECT_EQ(state(0), RankState::polling);
}

TEST_F(SpecialStates, ASuspensionIsTakenBackIfTheRankHasWoken) {
  using enum Action;
  start({{wait}, {wait}});
  blocks_->run(toys_[1]);
  EXPECT_FALSE(scheduler().suspend({0}, [] { return false; }));
  EXPECT_EQ(state(0), RankState::running);
  EXPECT_EQ(grant(0).run.load(), ipc::Run::may_run);
  EXPECT_FALSE(scheduler().suspend({0, 1}, [] { return true; }));  // 1 waits
  EXPECT_EQ(grant(0).run.load(), ipc::Run::may_run);
}

TEST_F(SpecialStates, TheProcessOfASuspendedRankEnds) {
  using enum Action;
  start({{wait}, {sleep, sleep, poll}});
  blocks_->run(toys_[1]);
  suspend(0);
  toys_[0].died = true;
  step(Scheduler::Outcome::woken);
  scheduler().remove(0);
  EXPECT_EQ(state(0), RankState::ended);
  EXPECT_TRUE(ranks().suspended().empty());
  go_on();
  EXPECT_EQ(state(0), RankState::finished);
  // From now on nobody can come back.
  EXPECT_GT(blocks_->block(1).clock.horizon_ps, ranks()[1].woken_ps + blocks_->view().bounds.lookahead_ps());
  go_on(Scheduler::Outcome::finished);
}

TEST_F(SpecialStates, ASuspendedRankThatReportsAnythingElseEndsTheRun) {
  using enum Action;
  start({{wait}, {wait}});
  blocks_->run(toys_[1]);
  suspend(0);
  grant(0).wait = ipc::Wait::flush;
  grant(0).run = ipc::Run::waits;
  EXPECT_THROW(static_cast<void>(blocks_->step()), RankError);
}

// Whether the simulator learns of the end before it has read the report or after it.
TEST_F(SpecialStates, OthersGoOnUpToTheEndOfAComputationThatHasEnded) {
  using enum Action;
  for (const bool is_read : {false, true}) {
    toys_.clear();
    start({{compute}, {sleep, wait}, {sleep, sleep, post}});
    blocks_->run_granted();
    const std::int64_t until_ps = blocks_->block(0).clock.now_ps();
    EXPECT_EQ(state_now(0), RankState::computing);
    EXPECT_EQ(ranks().computes_until_ps(0), until_ps);
    toys_[0].died = true;
    if (!is_read) {
      scheduler().remove(0);
      EXPECT_EQ(state(0), RankState::computing_ended);
    }
    grant(0).deadline_ps = until_ps;
    step(Scheduler::Outcome::woken);
    if (is_read) {
      // It has acted first, and has been granted.
      EXPECT_EQ(state(0), RankState::running);
      EXPECT_EQ(ranks().computes_until_ps(0), std::nullopt);
      scheduler().remove(0);
    }
    EXPECT_EQ(state(0), RankState::ended);
    EXPECT_EQ(grant(0).wait.load(), ipc::Wait::finished);
    EXPECT_LE(blocks_->now_ps(), until_ps + blocks_->view().bounds.lookahead_ps());
    EXPECT_TRUE(blocks_->view().grants.all_wait());
    step(Scheduler::Outcome::woken);
    EXPECT_EQ(state(0), RankState::finished);
  }
}

TEST_F(SpecialStates, AComputationWhoseProcessHasEndedBoundsTheOthers) {
  using enum Action;
  start({std::vector<Action>(9, sleep), {compute}});
  ipc::Clock& clock = blocks_->block(1).clock;
  clock.advance_to(clock.now_ps() + 20 * us);
  blocks_->run_granted();
  step(Scheduler::Outcome::woken);
  const std::int64_t until_ps = clock.now_ps();
  EXPECT_EQ(state(1), RankState::computing);
  EXPECT_EQ(state(0), RankState::running);
  toys_[1].died = true;
  scheduler().remove(1);
  EXPECT_EQ(state(1), RankState::computing_ended);
  EXPECT_EQ(ranks().alive(), 2U);
  EXPECT_EQ(ranks().computes_until_ps(1), until_ps);
  EXPECT_EQ(blocks_->block(0).clock.horizon_ps, until_ps + blocks_->view().bounds.lookahead_ps());
  // What the rank has printed belongs to the time before.
  std::vector<std::int64_t> wakes_ps;
  blocks_->view().bounds.earliest_wakes(wakes_ps);
  EXPECT_EQ(wakes_ps[1], ranks()[1].woken_ps);
  EXPECT_LT(wakes_ps[1], until_ps);
  blocks_->run_granted();
  EXPECT_GT(blocks_->block(0).clock.now_ps(), until_ps);  // it sleeps beyond the horizon, and waits
  step(Scheduler::Outcome::woken);
  EXPECT_EQ(state(1), RankState::ended);
  EXPECT_EQ(state(0), RankState::awaiting_time);
  step(Scheduler::Outcome::woken);
  EXPECT_EQ(state(1), RankState::finished);
  EXPECT_EQ(state(0), RankState::running);
}

TEST_F(SpecialStates, PollingRanksWaitWhereNothingElseCanHappen) {
  using enum Action;
  start({{poll, poll}, {poll, wait}});
  for (const std::uint32_t rank : {0U, 1U}) {
    blocks_->block(rank).clock.advance_to(blocks_->block(rank).clock.horizon_ps);
    for (int i = 0; i < 2000; ++i) blocks_->block(rank).progress.begin_call();
  }
  blocks_->run_granted();
  const std::uint64_t before = ranks().activity();
  step(Scheduler::Outcome::idle);
  EXPECT_EQ(state(0), RankState::polling);
  EXPECT_EQ(state(1), RankState::polling);
  // What they do is no progress.
  blocks_->block(0).progress.begin_call();
  EXPECT_LT(ranks().activity(), before);
  scheduler().release_idle([](std::uint32_t rank) { return rank == 1; });
  EXPECT_EQ(state(0), RankState::polling);
  EXPECT_EQ(state(1), RankState::running);
  EXPECT_EQ(blocks_->view().grants.last_woken(), std::vector<std::uint32_t>{1});
  toys_[0].died = true;
  scheduler().remove(0);
  EXPECT_EQ(state(0), RankState::ended);
}

TEST_F(SpecialStates, AReleaseLetsEachRankThatWaitsForAnEventLookOnce) {
  using enum Action;
  start({{wait}, {wait}});
  go_on(Scheduler::Outcome::idle);
  EXPECT_EQ(state(0), RankState::awaiting_event);
  scheduler().release_idle([](std::uint32_t) { return false; });
  EXPECT_EQ(blocks_->view().grants.last_woken(), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_TRUE(blocks_->block(0).progress.is_granted());
}

TEST_F(SpecialStates, TheProcessOfARankThatWaitsEnds) {
  using enum Action;
  start({{wait}, {sleep}, {sleep, sleep, sleep}});
  ipc::Clock& clock = blocks_->block(1).clock;
  clock.advance_to(clock.now_ps() + 20 * us);
  go_on();
  EXPECT_EQ(state(0), RankState::awaiting_event);
  EXPECT_EQ(state(1), RankState::awaiting_time);
  EXPECT_EQ(state(2), RankState::running);
  for (const std::uint32_t rank : {0U, 1U}) {
    toys_[rank].died = true;
    scheduler().remove(rank);
    EXPECT_EQ(state(rank), RankState::ended);
  }
  go_on(Scheduler::Outcome::finished);
  EXPECT_EQ(state(0), RankState::finished);
  EXPECT_EQ(state(1), RankState::finished);
}

TEST_F(SpecialStates, PollingRanksThatShareMemoryAreGrantedOneAfterTheOther) {
  using enum Action;
  start({{share, poll, poll}, {share, poll, poll}}, true);
  for (const std::uint32_t rank : {0U, 1U}) {
    blocks_->block(rank).clock.advance_to(blocks_->block(rank).clock.horizon_ps);
    for (int i = 0; i < 2000; ++i) blocks_->block(rank).progress.begin_call();
  }
  go_on(Scheduler::Outcome::idle);
  EXPECT_EQ(state(0), RankState::polling);
  EXPECT_EQ(state(1), RankState::polling);
  scheduler().release_idle([](std::uint32_t) { return true; });
  EXPECT_EQ(state(0), RankState::running);
  EXPECT_EQ(state(1), RankState::queued);
}

// What another rank wrote has ended the run, and the simulator ends all processes.
TEST_F(SpecialStates, TheProcessOfARankWhoseRingsAreFullEnds) {
  using enum Action;
  start({{flush}, {wait}});
  blocks_->run_granted();
  grant(1).wait = static_cast<ipc::Wait>(99);
  EXPECT_THROW(static_cast<void>(blocks_->step()), RankError);
  EXPECT_EQ(state(0), RankState::flushing);
  toys_[0].died = true;
  scheduler().remove(0);
  EXPECT_EQ(state(0), RankState::ended);
}

// Another rank needs messages to come so far.
TEST_F(SpecialStates, TheProcessOfARankThatHasReachedTheStartEnds) {
  using enum Action;
  for (std::size_t rank = 0; rank < 2; ++rank) toys_.emplace_back(rank, 2, std::vector<Action>{});
  blocks_.emplace(round_ideal(), std::vector<NodeId>{0, 1}, toys_, HostProperties{});
  blocks_->run_granted();
  grant(1).wait = ipc::Wait::for_event;
  step(Scheduler::Outcome::idle);
  EXPECT_EQ(state(0), RankState::starting);
  EXPECT_EQ(state(1), RankState::awaiting_event);
  toys_[0].died = true;
  scheduler().remove(0);
  EXPECT_EQ(state(0), RankState::ended);
  scheduler().release_idle([](std::uint32_t) { return false; });
  toys_[1].wait = ipc::Wait::running;
  grant(1).wait = ipc::Wait::start;
  grant(1).run = ipc::Run::waits;
  step(Scheduler::Outcome::woken);
  EXPECT_EQ(state(0), RankState::finished);
  EXPECT_EQ(state(1), RankState::running);
  EXPECT_EQ(ranks().alive(), 1U);
}

// Ranks that share memory run one after the other, the earliest first.
TEST_F(SpecialStates, TheProcessOfAQueuedRankEnds) {
  using enum Action;
  start({{share, sleep, poll}, {share, sleep, poll}, {share, sleep, poll}}, true);
  go_on();
  EXPECT_EQ(state(0), RankState::running);
  EXPECT_EQ(state(1), RankState::queued);
  EXPECT_EQ(state(2), RankState::queued);
  EXPECT_TRUE(blocks_->view().grants.any_is_queued());
  EXPECT_FALSE(ranks().has_grant(1));
  toys_[1].died = true;
  scheduler().remove(1);
  EXPECT_EQ(state(1), RankState::ended);
  go_on();
  EXPECT_EQ(state(1), RankState::ended);
  EXPECT_EQ(state(2), RankState::running);
  EXPECT_EQ(grant(1).run.load(), ipc::Run::waits);
  go_on(Scheduler::Outcome::finished);
}

// Its turn is behind another rank's of its node, and passes.
TEST_F(SpecialStates, AComputationThatSharesMemoryHasEnded) {
  using enum Action;
  start({{share, compute, poll}, {share, compute, poll}}, true);
  blocks_->run(toys_[0]);
  scheduler().grant_next();
  blocks_->run(toys_[1]);
  EXPECT_EQ(state_now(0), RankState::computing);
  EXPECT_EQ(state_now(1), RankState::computing);
  toys_[1].died = true;
  scheduler().remove(1);
  EXPECT_EQ(state(1), RankState::computing_ended);
  step(Scheduler::Outcome::woken);
  EXPECT_EQ(state(0), RankState::running);
  EXPECT_EQ(state(1), RankState::ended);
  EXPECT_EQ(grant(1).wait.load(), ipc::Wait::finished);
  go_on(Scheduler::Outcome::finished);
  EXPECT_EQ(state(1), RankState::finished);
}

TEST_F(SpecialStates, AQueuedRankMayBeGrantedBesideOthers) {
  using enum Action;
  start({{share, sleep, poll}, {share, sleep, poll}}, true);
  go_on();
  EXPECT_EQ(state(1), RankState::queued);
  scheduler().grant_next();
  EXPECT_EQ(state(1), RankState::running);
  EXPECT_EQ(grant(1).run.load(), ipc::Run::may_run);
  EXPECT_EQ(state(0), RankState::running);
}

// No rank runs ahead of a failure by more than the lookahead.
TEST_F(SpecialStates, TheEndOfTheRunBoundsAllHorizons) {
  using enum Action;
  start({{sleep, sleep}, {wait}});
  scheduler().end_at(us);
  go_on();
  EXPECT_EQ(blocks_->block(0).clock.horizon_ps, us + blocks_->view().bounds.lookahead_ps());
}

TEST_F(SpecialStates, ARankThatHasFinishedMayEnd) {
  using enum Action;
  start({{exit}, {sleep, sleep}});
  go_on();
  EXPECT_EQ(state(0), RankState::finished);
  scheduler().remove(0);
  scheduler().remove(0);
  EXPECT_EQ(state(0), RankState::finished);
  EXPECT_EQ(ranks().alive(), 1U);
}

// The card learns when a message is taken from its mailbox, and may answer.
TEST_F(SpecialStates, AFlushKeepsTheHorizonOfAMessageThatWasTaken) {
  using enum Action;
  start({{wait, flush, wait}, {post, wait, wait}}, false, machine("extoll-64"));
  for (ToyRank& toy : toys_) blocks_->run(toy);
  blocks_->block(1).rings.requests[0].flags |= message::from_cpu;  // by VELO, whose messages take a mailbox
  step(Scheduler::Outcome::woken);
  while (toys_[0].log.empty()) go_on();
  EXPECT_EQ(blocks_->block(0).rings.events[0].mailbox_packets, 1U);
  EXPECT_EQ(state(0), RankState::running);
  EXPECT_EQ(blocks_->block(0).clock.horizon_ps,
            toys_[0].log.front().at_ps + blocks_->view().bounds.lookahead_ps());
}

}  // namespace
}  // namespace apenet::test
