#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernel/random.hpp"
#include "runtime/scripted/goal.hpp"
#include "runtime/scripted/message_passing.hpp"

namespace apenet {
namespace {

GoalSchedule parse(const std::string& text) {
  return parse_goal(text, "t.goal");
}

std::string refusal(const std::string& text) {
  try {
    parse(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(Goal, IsReadAsTheSimulatorsOfTheFormatReadIt) {
  const GoalSchedule schedule = parse(
      "num_ranks 2\n\n"
      "rank 0 {\n"
      "l1: calc 1000 cpu 1\n"
      "l2: send 8b to 1 tag 7 cpu 0 nic 0 // a comment\n"
      "/* two\n lines */ recv 16 b from -1 tag -1\r\n"
      "l2 requires l1\n"
      "}\n"
      "rank 1 { l1: recv 8b from 0 tag 7 }\n");
  ASSERT_EQ(schedule.ranks.size(), 2U);
  const GoalRank& first = schedule.ranks[0];
  ASSERT_EQ(first.operations.size(), 3U);
  EXPECT_EQ(first.cpus, 2);
  EXPECT_EQ(first.operations[0].amount, 1000);
  EXPECT_EQ(to_text(first.operations[1]), "send 8b to 1 tag 7");
  EXPECT_EQ(first.operations[2].peer, any_rank);
  EXPECT_EQ(first.operations[2].tag, any_tag);
  EXPECT_EQ(first.operations[2].line, 7U);
  EXPECT_EQ(first.first_successor, (std::vector<std::uint32_t>{0, 1, 1, 1}));
  EXPECT_EQ(first.successors, (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(schedule.operation_count(), 4U);
}

TEST(Goal, BuffersInGpuMemoryAndInterfacesAreKnown) {
  const GoalSchedule schedule = parse(
      "num_ranks 1\nrank 0 {\n"
      "send 8b to 0 tag 1 nic 2 // @0x10 gpu\r\n"
      "recv 8b from 0 tag 1 // @0x20 gpus\n"
      "recv 8b from 0 tag 1 nic 0 // @0x20 gpu\n"
      "calc 5 // @0x77 gpu\n}");
  const std::vector<GoalOperation>& operations = schedule.ranks[0].operations;
  std::vector<bool> in_gpu;
  for (const GoalOperation& operation : operations) in_gpu.push_back(operation.in_gpu);
  EXPECT_EQ(in_gpu, (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(schedule.buffers_in_gpu, 2U);
  EXPECT_EQ(schedule.nics, (std::set<std::uint16_t>{0, 2}));
}

TEST(Goal, AddressesStandInComments) {
  const GoalSchedule schedule = parse(
      "num_ranks 1 // @0x9\nrank 0 {\n"
      "a: send 8b to 0 tag 1 // @0x7ffff7a01000\n"
      "// @0x5\n"
      "send 8b to 0 // @nothing\n"
      "recv 8b from 0 tag 1 // @0xaBc, with a word\n"
      "recv 8b from 0 // @0x99999999999999999\n"
      "recv 0b from 0\n"
      "calc 5 // @0x77\n}");
  const std::vector<GoalOperation>& operations = schedule.ranks[0].operations;
  std::vector<std::uint64_t> addresses;
  for (const GoalOperation& operation : operations) addresses.push_back(operation.address);
  EXPECT_EQ(addresses, (std::vector<std::uint64_t>{0x7ffff7a01000, 0, 0xabc, 0, 0, 0x77}));
  EXPECT_EQ(schedule.buffers_in_gpu, 0U);
  EXPECT_EQ(schedule.receives_at_no_address, 1U)
      << "one of the three with bytes, the others have one or need none";
}

TEST(Goal, CallsStandInComments) {
  const GoalSchedule schedule = parse(
      "num_ranks 1\nrank 0 {\n"
      "send 8b to 0 // @0x10 gpu in MPI_Isend MPI_Waitall\n"
      "recv 8b from 0 // @0x20 in MPI_Recv\r\n"
      "send 0b to 0 // in MPI_Isend MPI_Wait all\n"
      "recv 0b from 0 // in <b>\n"
      "calc 5 // in\n}");
  EXPECT_EQ(schedule.calls, (std::vector<std::string>{"", "MPI_Isend", "MPI_Waitall", "MPI_Recv"}));
  std::vector<std::pair<int, int>> calls;
  for (const GoalOperation& one : schedule.ranks[0].operations)
    calls.emplace_back(one.begun_in, one.ended_in);
  EXPECT_EQ(calls, (std::vector<std::pair<int, int>>{{1, 2}, {3, 3}, {0, 0}, {0, 0}, {0, 0}}));
  EXPECT_TRUE(schedule.ranks[0].operations[0].in_gpu);
  EXPECT_EQ(schedule.ranks[0].operations[1].address, 0x20U);
}

TEST(Goal, CallsMayHavePlaces) {
  const GoalSchedule schedule = parse(
      "num_ranks 1\nrank 0 {\n"
      "send 8b to 0 // in MPI_Send@a.c:12\n"
      "recv 8b from 0 // @0x20 in MPI_Irecv@x@y.c:1 MPI_Wait\n"
      "send 8b to 0 // in MPI_Send@a.c:13 MPI_Send@a.c:12\n"
      "send 8b to 0 // in MPI_Send@\n"
      "recv 8b from 0 // in @a.c:12\n}");
  EXPECT_EQ(schedule.calls, (std::vector<std::string>{"", "MPI_Send@a.c:12", "MPI_Irecv@x@y.c:1", "MPI_Wait",
                                                      "MPI_Send@a.c:13"}));
  std::vector<std::pair<int, int>> calls;
  for (const GoalOperation& one : schedule.ranks[0].operations)
    calls.emplace_back(one.begun_in, one.ended_in);
  EXPECT_EQ(calls, (std::vector<std::pair<int, int>>{{1, 1}, {2, 3}, {4, 1}, {0, 0}, {0, 0}}));
}

TEST(Goal, CallsMayHaveNumbers) {
  const GoalSchedule schedule = parse(
      "num_ranks 1\nrank 0 {\n"
      "send 8b to 0 // in MPI_Send@a.c:12#3\n"
      "recv 8b from 0 // @0x20 in MPI_Irecv#7 MPI_Wait@a#9.c:1#4294967295\n"
      "send 8b to 0 // in MPI_Send@a#2.c:13\n"
      "send 8b to 0 // in MPI_Send#x\n"
      "send 8b to 0 // in #4\n}");
  EXPECT_EQ(schedule.calls, (std::vector<std::string>{"", "MPI_Send@a.c:12", "MPI_Irecv", "MPI_Wait@a#9.c:1",
                                                      "MPI_Send@a#2.c:13"}));
  std::vector<std::pair<std::uint32_t, std::uint32_t>> numbers;
  for (const GoalOperation& one : schedule.ranks[0].operations)
    numbers.emplace_back(one.begun_number, one.ended_number);
  EXPECT_EQ(numbers, (std::vector<std::pair<std::uint32_t, std::uint32_t>>{
                         {3, 3}, {7, 4294967295U}, {0, 0}, {0, 0}, {0, 0}}));
}

TEST(Goal, LabelsMayBeUsedBeforeTheyAreGiven) {
  const GoalSchedule schedule = parse("num_ranks 1 rank 0 {\nb irequires a\na: calc 1\nb: calc 2\n}");
  EXPECT_EQ(schedule.ranks[0].successors, (std::vector<std::uint32_t>{1 | GoalRank::on_start}));
}

TEST(Goal, SaysWhereWhatIsWrongAndWhatWasExpected) {
  const std::string head = "num_ranks 2\nrank 0 {\n";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "t.goal:1 = the first word: expected num_ranks"},
      {"rank 0 {", "t.goal:1 = the first word: expected num_ranks"},
      {"num_ranks 0", "t.goal:1 = \"0\": expected the number of ranks, a whole number from 1 to 4194304"},
      {"num_ranks 99999999999999999999999", "expected the number of ranks"},
      {"num_ranks 2\n", "t.goal:2 = \"the end of the file\": expected 2 ranks; 0 are there"},
      {"num_ranks 1\nrank 1 {}", "t.goal:2 = \"1\": expected a rank, a whole number from 0 to 0"},
      {"num_ranks 2\nrank 0 {}\nrank 0 {}", "expected every rank once"},
      {"num_ranks 2\nrank 0 {}\n}", "t.goal:3 = \"}\": expected rank"},
      {head + "l1: send 8b to 1", "t.goal:3 = \"the end of the file\": expected the } of rank 0"},
      {head + "l1: send 8b to 2\n}", "t.goal:3 = \"2\": expected a rank, a whole number from 0 to 1"},
      {head + "l1: send 8b to -1\n}", "t.goal:3 = \"-1\": expected a rank"},
      {head + "l1: send b to 1\n}", "t.goal:3 = \"b\": expected the size of the message, a whole number"},
      {head + "l1: send 8 to 1\n}", "expected the size in bytes, such as 8b"},
      {head + "l1: send 8b from 1\n}", "t.goal:3 = \"from\": expected to"},
      {head + "l1: recv 8b to 1\n}", "t.goal:3 = \"to\": expected from"},
      {head + "l1: send 8b to 1 tag x\n}", "t.goal:3 = \"x\": expected a tag"},
      {head + "l1: send 8b to 1 tag -1\n}", "t.goal:3 = \"-1\": expected a tag"},
      {head + "l1: send 8b to 1 tag 1 tag 2\n}", "t.goal:3 = \"tag\": expected tag, cpu, nic, each once"},
      {head + "l1: calc 5 tag 2\n}", "t.goal:3 = \"tag\": expected tag, cpu, nic, each once"},
      {head + "l1: calc -5\n}", "t.goal:3 = \"-5\": expected nanoseconds"},
      {head + "l1: calc 5 cpu 256\n}", "expected a CPU, a whole number from 0 to 255"},
      {head + "l1: calc\n}", "t.goal:3 = \"the end of the line\": expected nanoseconds"},
      {head + "l1: wait 5\n}", "t.goal:3 = \"wait\": expected send, recv or calc"},
      {head + "l1 calc 5\n}", "t.goal:3 = \"calc\": expected :, requires or irequires"},
      {head + "l1: calc 5\nl1: calc 6\n}",
       "t.goal:4 = \"l1\": expected every label once: it is that of line 3"},
      {head + "l1: calc 5\nl1 requires l9\n}",
       "t.goal:4 = \"l9\": expected a label of an operation of this rank"},
      {head + "l1: calc 5\nl9 requires l1\n}",
       "t.goal:4 = \"l9\": expected a label of an operation of this rank"},
      {head + "l1: calc 5\nl1 requires\n}", "t.goal:4 = \"the end of the line\": expected a label"},
      {head + "l1: calc 5 /* for ever\n}", "t.goal:3 = \"/*\": expected a comment that ends with */"},
      {head + "\x01\x02\n}", "t.goal:3 = \"\\x01\\x02\": expected send, recv, calc, a label or }"},
      {head + "l1: calc 5\nl1 requires l1\n}",
       "t.goal:4 = \"l1 requires l1\": expected operations that do not wait for each other: l1 (line 3) "
       "waits "
       "for l1"},
      {head + "a: calc 1\nb: calc 2\nc: calc 3\na requires c\nb irequires a\nc requires b\n}",
       "t.goal:6 = \"a requires c\": expected operations that do not wait for each other: a (line 3) waits "
       "for c "
       "(line 5) waits for b (line 4) waits for a"},
      {head + "a: calc 1\nb: calc 2\na irequires b\nb requires a\n}",
       "t.goal:5 = \"a irequires b\": expected operations that do not wait for each other"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_NE(refusal(text).find(expected), std::string::npos) << text << "\n gives: " << refusal(text);
  }
}

TEST(Goal, AFileThatCannotBeReadIsNamed) {
  EXPECT_THROW(std::ignore = read_goal("/nowhere/t.goal", "t.goal"), std::invalid_argument);
  EXPECT_THROW(std::ignore = read_goal("/", "/"), std::invalid_argument);
}

// A sound trace with bytes changed, words moved and its end cut off: an error or a schedule, and nothing
// worse (the sanitizers look on). A schedule that is read keeps what its reader relies on.
TEST(Goal, BrokenFilesAreRefusedOrSound) {
  const std::string sound =
      "num_ranks 3\nrank 0 {\nl1: calc 100 cpu 1\nl2: send 4096b to 1 tag 3 cpu 0 nic 1\nl2 requires l1\n}\n"
      "rank 2 { /* x */ }\nrank 1 {\nl1: recv 4096b from 0 tag 3\nl2: recv 1b from -1 tag -1\nl2 irequires "
      "l1\n"
      "l3: calc 5\nl3 requires l2\n// end\n}\n";
  const std::string alphabet = "lrs{}:/*\n b0123456789-\t\xff_";
  RandomStream random(1, 0);
  const auto draw = [&](std::size_t bound) { return static_cast<std::size_t>(random.below(bound)); };
  int refused = 0;
  constexpr int rounds = 20'000;
  for (int round = 0; round < rounds; ++round) {
    std::string text = sound;
    for (std::size_t change = draw(4) + 1; change > 0 && !text.empty(); --change) {
      const std::size_t at = draw(text.size());
      switch (draw(4)) {
        case 0:
          text[at] = alphabet[draw(alphabet.size())];
          break;
        case 1:
          text.erase(at, draw(12));
          break;
        case 2:
          text.insert(at, text.substr(draw(text.size()), draw(30)));
          break;
        default:
          if (draw(4) == 0) text.resize(at);
          break;
      }
    }
    try {
      const GoalSchedule schedule = parse(text);
      for (const GoalRank& rank : schedule.ranks) {
        ASSERT_EQ(rank.first_successor.size(), rank.operations.size() + 1);
        ASSERT_EQ(rank.first_successor.back(), rank.successors.size());
        for (const std::uint32_t successor : rank.successors)
          ASSERT_LT(successor & ~GoalRank::on_start, rank.operations.size());
        for (const GoalOperation& operation : rank.operations) {
          ASSERT_LT(operation.cpu, rank.cpus);
          ASSERT_TRUE(operation.peer == any_rank || operation.peer < schedule.ranks.size());
        }
      }
    } catch (const std::invalid_argument& error) {
      ++refused;
      ASSERT_EQ(std::string(error.what()).rfind("t.goal:", 0), 0U) << error.what();
    }
  }
  EXPECT_GT(refused, rounds / 2);
  EXPECT_LT(refused, rounds);
}

}  // namespace
}  // namespace apenet
