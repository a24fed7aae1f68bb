// The table of a rank's states and transitions.
#include "runtime/scheduler/rank_state.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "runtime/scheduler/rank_error.hpp"
#include "runtime/scheduler/rank_table.hpp"

namespace apenet::test {
namespace {

std::string table_of_states() {
  std::string text = "| state | the rank |\n|---|---|\n";
  for (std::size_t i = 0; i < rank_state_count; ++i) {
    const auto state = static_cast<RankState>(i);
    text += "| `" + std::string(name_of(state)) + "` | " + std::string(meaning_of(state)) + " |\n";
  }
  return text;
}

std::string table_of_inputs() {
  std::string text = "| input | means |\n|---|---|\n";
  for (std::size_t i = 0; i < rank_input_count; ++i) {
    const auto input = static_cast<RankInput>(i);
    text += "| `" + std::string(name_of(input)) + "` | " + std::string(meaning_of(input)) + " |\n";
  }
  return text;
}

std::string table_of_transitions() {
  std::string text = "| from | input | to |\n|---|---|---|\n";
  for (const RankTransition& transition : rank_transitions()) {
    text += "| `" + std::string(name_of(transition.from)) + "` | `" + std::string(name_of(transition.input)) +
            "` | `" + std::string(name_of(transition.to)) + "` |\n";
  }
  return text;
}

TEST(RankState, ThePagePrintsTheTablesThatTheCodeExecutes) {
  std::ifstream file(APENET_RANK_STATES_PAGE);
  ASSERT_TRUE(file);
  std::stringstream page;
  page << file.rdbuf();
  for (const std::string& table : {table_of_states(), table_of_inputs(), table_of_transitions()})
    EXPECT_NE(page.str().find("\n" + table + "\n"), std::string::npos)
        << APENET_RANK_STATES_PAGE << " should contain\n"
        << table;
}

TEST(RankState, TheTableNamesEachPairOnceAndReachesEachState) {
  std::set<std::pair<RankState, RankInput>> pairs;
  std::set<RankState> reached{RankState::running};
  for (const RankTransition& transition : rank_transitions()) {
    EXPECT_TRUE(pairs.emplace(transition.from, transition.input).second) << name_of(transition.from);
    EXPECT_EQ(next_state(transition.from, transition.input), transition.to);
    reached.insert(transition.to);
  }
  EXPECT_EQ(reached.size(), rank_state_count);
}

TEST(RankState, WhatTheTableDoesNotListIsRefused) {
  for (std::size_t from = 0; from < rank_state_count; ++from) {
    for (std::size_t input = 0; input < rank_input_count; ++input) {
      bool is_listed = false;
      for (const RankTransition& transition : rank_transitions())
        is_listed = is_listed || (static_cast<std::size_t>(transition.from) == from &&
                                  static_cast<std::size_t>(transition.input) == input);
      EXPECT_EQ(next_state(static_cast<RankState>(from), static_cast<RankInput>(input)).has_value(),
                is_listed);
    }
  }
}

TEST(RankState, ARefusalNamesTheRankAndBothStates) {
  SharedMemory shared(2);
  RankTable ranks(shared, 2);
  EXPECT_THROW(
      {
        try {
          ranks.apply(1, RankInput::grant);
        } catch (const std::logic_error& error) {
          EXPECT_STREQ(error.what(), "rank 1 is running, which 'grant' may not follow");
          throw;
        }
      },
      std::logic_error);
  ranks.apply(1, RankInput::suspend);
  EXPECT_THROW(
      {
        try {
          ranks.apply_report(1, RankInput::reports_flush);
        } catch (const RankError& error) {
          EXPECT_STREQ(error.what(),
                       "rank 1 wrote an invalid state: reports_flush, which may not follow suspended");
          throw;
        }
      },
      RankError);
  EXPECT_EQ(ranks[1].state, RankState::suspended);
}

}  // namespace
}  // namespace apenet::test
