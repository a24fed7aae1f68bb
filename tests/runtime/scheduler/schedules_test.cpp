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

// Every step-th schedule of so many ranks with so many actions each, from `first` on.
void enumerate(std::size_t ranks, std::size_t actions, std::uint64_t first = 0, std::uint64_t step = 1) {
  std::uint64_t count = 1;
  for (std::size_t i = 0; i < ranks * actions; ++i) count *= small_alphabet;
  for (std::uint64_t number = first; number < count; number += step) {
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

// All schedules of 1 rank with 5 actions, of 2 with 3 and of 3 with 2, and 200,000 drawn ones: a quarter of
// an hour under a sanitizer, which is for the night (APENET_WHOLE_SCHEDULES). By day one of day_share.
// Neither number divides those on which the properties of the host depend.
constexpr std::uint64_t schedule_parts = 13;
constexpr std::uint64_t day_share = 293;

class ManySchedules : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(ManySchedules, AreAsSpecified) {
  const std::uint64_t part = GetParam();
  const std::uint64_t share = std::getenv("APENET_WHOLE_SCHEDULES") == nullptr ? day_share : 1;
  const std::uint64_t step = schedule_parts * share;
  enumerate(1, 5, part, step);
  enumerate(2, 3, part, step);
  enumerate(3, 2, part, step);
  const std::uint64_t drawn = 200'000 / schedule_parts;
  draw(1'000'000 + part * drawn, drawn / share);
}

INSTANTIATE_TEST_SUITE_P(Part, ManySchedules, ::testing::Range(std::uint64_t{0}, schedule_parts));

}  // namespace
}  // namespace apenet::test
