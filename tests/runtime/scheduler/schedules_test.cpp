// The scheduler against its specification: all small schedules, and many drawn ones.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>

#include "block_ranks.hpp"
#include "naive_scheduler.hpp"
#include "support/cases.hpp"
#include "support/machines.hpp"

namespace apenet::test {
namespace {

using Schedule = std::vector<std::vector<Action>>;  // by rank

constexpr std::array<const char*, whole_alphabet> action_names{
    "post",      "wait",  "poll",       "compute",  "sleep",       "share",         "exit",        "die",
    "join_late", "flush", "timed_wait", "wait_two", "die_waiting", "die_computing", "outside_wait"};

std::string text_of(const Schedule& schedule) {
  std::string text;
  for (const auto& actions : schedule) {
    text += text.empty() ? "" : " | ";
    for (const Action action : actions)
      text += std::string(action_names[static_cast<std::size_t>(action)]) + " ";
  }
  return text;
}

struct Result {
  bool all_left = false;
  std::uint64_t trace_hash = 0;
  std::vector<std::vector<Seen>> logs;
  std::vector<std::int64_t> clocks_ps;
  bool operator==(const Result&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Result& result) {
  out << (result.all_left ? "all left" : "stuck") << ", hash " << result.trace_hash;
  for (std::size_t rank = 0; rank < result.logs.size(); ++rank) {
    out << "\n  rank " << rank << " at " << result.clocks_ps[rank] << ":";
    for (const Seen& seen : result.logs[rank])
      out << " (" << seen.at_ps << ": " << seen.kind << " from " << seen.source << ", " << seen.message
          << ")";
  }
  return out;
}

const MachineDescription& description() {
  static const MachineDescription ideal = round_ideal();
  return ideal;
}

// Ranks that share memory have a node in common.
std::vector<NodeId> nodes_of(const Schedule& schedule) {
  const auto shares = [](const auto& actions) {
    return std::find(actions.begin(), actions.end(), Action::share) != actions.end();
  };
  const bool any_shares = std::any_of(schedule.begin(), schedule.end(), shares);
  std::vector<NodeId> nodes;
  for (NodeId rank = 0; rank < schedule.size(); ++rank) nodes.push_back(any_shares ? rank / 3 : rank);
  return nodes;
}

std::vector<ToyRank> toys(const Schedule& schedule) {
  std::vector<ToyRank> ranks;
  for (const auto& actions : schedule) ranks.emplace_back(ranks.size(), schedule.size(), actions);
  return ranks;
}

Result result_of(bool all_left, std::uint64_t trace_hash, std::vector<ToyRank>& ranks) {
  Result result{.all_left = all_left, .trace_hash = trace_hash, .logs = {}, .clocks_ps = {}};
  for (ToyRank& rank : ranks) {
    result.clocks_ps.push_back(rank.clock_ps);
    result.logs.push_back(std::move(rank.log));
  }
  return result;
}

Result specified(const Schedule& schedule) {
  std::vector<ToyRank> ranks = toys(schedule);
  NaiveScheduler naive(description(), nodes_of(schedule), ranks);
  const bool all_left = naive.run();
  return result_of(all_left, naive.trace_hash(), ranks);
}

Result scheduled(const Schedule& schedule, const HostProperties& properties) {
  std::vector<ToyRank> ranks = toys(schedule);
  BlockRanks blocks(description(), nodes_of(schedule), ranks, properties);
  const bool all_left = blocks.run();
  return result_of(all_left, blocks.final_trace_hash(), ranks);
}

HostProperties properties_of(std::uint64_t number) {
  return {.runs_last_first = (number & 1) != 0,
          .computes_long = (number & 2) != 0,
          .ends_are_seen_late = (number & 4) != 0,
          .one_at_a_time = number % 5 == 0,
          .wakes_for_each_event = number % 7 == 0};
}

// Returns false at the first difference.
bool agrees(const Schedule& schedule, std::uint64_t number) {
  const Result wanted = specified(schedule);
  try {
    const Result got = scheduled(schedule, properties_of(number));
    EXPECT_EQ(got, wanted) << text_of(schedule);
    return got == wanted;
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what() << "\n" << text_of(schedule);
    return false;
  }
}

// All schedules of so many ranks with so many actions each, or one of `of_each`.
void enumerate(std::size_t ranks, std::size_t actions, std::uint64_t of_each = 1) {
  std::uint64_t count = 1;
  for (std::size_t i = 0; i < ranks * actions; ++i) count *= small_alphabet;
  for (std::uint64_t number = 0; number < count; number += of_each) {
    Schedule schedule(ranks, std::vector<Action>(actions));
    std::uint64_t left = number;
    for (auto& of_rank : schedule) {
      for (Action& action : of_rank) {
        action = static_cast<Action>(left % small_alphabet);
        left /= small_alphabet;
      }
    }
    if (!agrees(schedule, number)) return;
  }
}

void draw(std::uint64_t first_seed, std::uint64_t count) {
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    std::mt19937_64 random(seed);
    Schedule schedule(1 + random() % 4);
    for (auto& of_rank : schedule) {
      of_rank.resize(random() % 6);
      for (Action& action : of_rank) action = static_cast<Action>(random() % whole_alphabet);
    }
    if (!agrees(schedule, random())) return;
  }
}

TEST(Schedules, AllOfOneRank) {
  enumerate(1, 3);
}

TEST(Schedules, AllOfTwoRanks) {
  enumerate(2, 1);
  enumerate(2, 2);
}

TEST(Schedules, AllOfSeveralRanksWithOneAction) {
  enumerate(3, 1);
  if (drawn_cases(16) == 16) enumerate(4, 1);
}

TEST(Schedules, ManyDrawn) {
  draw(1, drawn_cases(6000));
}

// A flush moves requests, and no event: the rank knows no more of the effects of what it has posted.
TEST(Schedules, APollAfterAFlushSeesTheRanksOwnMessage) {
  using enum Action;
  const Schedule schedule{{sleep, post, flush, sleep, poll}};
  const Seen message{
      .at_ps = 7 * ToyRank::us, .kind = static_cast<int>(ipc::EventKind::arrived), .source = 0, .message = 1};
  EXPECT_EQ(specified(schedule).logs, (std::vector<std::vector<Seen>>{{message}}));
  for (std::uint64_t number = 0; number < 2 * 2 * 2 * 5 * 7; ++number)
    EXPECT_EQ(scheduled(schedule, properties_of(number)), specified(schedule));
}

// The host ends two waits at once. What the second rank sends then, at its own clock, arrives before the
// first one polls at a later one.
TEST(Schedules, APollAfterAReleaseSeesWhatAnotherReleasedRankHasSent) {
  using enum Action;
  const Schedule schedule{{sleep, sleep, sleep, outside_wait, poll}, {outside_wait, post}};
  const std::vector<Seen> polled = specified(schedule).logs[0];
  ASSERT_EQ(polled.size(), 2);
  EXPECT_EQ(polled[0].kind, -1);
  EXPECT_EQ(polled[1].kind, static_cast<int>(ipc::EventKind::arrived));
  for (std::uint64_t number = 0; number < 2 * 2 * 2 * 5 * 7; ++number)
    EXPECT_EQ(scheduled(schedule, properties_of(number)), specified(schedule));
}

// Some minutes: for the night. The variable's value n takes one of n schedules, for a sanitizer.
TEST(Schedules, AllOfManyActions) {
  const char* const whole = std::getenv("APENET_WHOLE_SCHEDULES");
  if (whole == nullptr) GTEST_SKIP() << "APENET_WHOLE_SCHEDULES is not set";
  const std::uint64_t of_each = std::stoull(whole);
  enumerate(1, 5, of_each);
  enumerate(2, 3, of_each);
  enumerate(3, 2, of_each);
  draw(1'000'000, 200'000 / of_each);
}

}  // namespace
}  // namespace apenet::test
