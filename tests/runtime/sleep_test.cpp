// A process that says how many events it needs sleeps until they have come, and sees the same times.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "ranks.hpp"
#include "runtime/session.hpp"

namespace apenet::test {
namespace {

constexpr std::int64_t gap_ps = 3'000'000;

void post_word(ipc::Client& client, std::uint32_t target, bool no_reply) {
  ipc::Request request;
  request.target = target;
  request.bytes = 8;
  request.inline_length = 8;
  request.no_reply = no_reply ? 1 : 0;
  client.post(request);
}

// Sends a word to rank 1 for each letter, one gap after the other: 'a' asks for something, '.' for nothing.
RankProgram sender(const std::string& words) {
  return [words](ipc::Client& client) {
    for (const char word : words) {
      client.charge(gap_ps);
      post_word(client, 1, word == '.');
    }
    leave(client);
  };
}

// Takes so many words, and says of each when it came and how many events were there when it was taken.
RankProgram receiver(int words, std::uint32_t least_events) {
  return [=](ipc::Client& client) {
    client.progress().begin_wait();
    for (int word = 0; word < words; ++word) {
      const ipc::Event* event = client.poll(word == 0 ? least_events : 1);
      if (event == nullptr) _exit(9);
      const ipc::Rings& rings = client.block().rings;
      std::printf("%lld:%u ", static_cast<long long>(client.clock_ps()), rings.event_head - rings.event_tail);
      client.pop();
    }
    leave(client);
  };
}

std::string taken(const std::string& words, std::uint32_t least_events) {
  const Ran ran =
      run_ranks(test::round_ideal(), {sender(words), receiver(static_cast<int>(words.size()), least_events)});
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
  return ran.output;
}

TEST(Sleep, LastsUntilSoManyEventsHaveCome) {
  EXPECT_EQ(taken("....", 1), "4008000:1 7008000:1 10008000:1 13008000:1 ");
  EXPECT_EQ(taken("....", 3), "4008000:3 7008000:2 10008000:1 13008000:1 ");
  EXPECT_EQ(taken("....", 4), "4008000:4 7008000:3 10008000:2 13008000:1 ");
}

TEST(Sleep, EndsWithAMessageThatAsksForSomething) {
  EXPECT_EQ(taken("a...", 4), "4008000:1 7008000:1 10008000:1 13008000:1 ");
  EXPECT_EQ(taken(".a..", 4), "4008000:2 7008000:1 10008000:1 13008000:1 ");
}

// Otherwise a deadlock could not be seen, nor said what each process still waits for.
TEST(Sleep, EndsWhenNothingElseCanHappen) {
  EXPECT_EQ(taken("..", 4), "4008000:2 7008000:1 ");
}

TEST(Sleep, EndsWhenTheOthersPollForEver) {
  const auto looker = [](ipc::Client& client) {
    post_word(client, 1, true);
    client.progress().begin_test();
    const ipc::Event* event = nullptr;
    while (event == nullptr) {
      client.progress().begin_call();
      event = client.poll();
      client.charge(1000);
    }
    leave(client);
  };
  const auto sleeper = [](ipc::Client& client) {
    client.progress().begin_wait();
    if (client.poll(2) == nullptr) _exit(9);
    client.pop();
    post_word(client, 0, true);
    leave(client);
  };
  SessionOptions options;
  options.stall_timeout_ms = 20;  // polls without end after so many thousand looks
  const Ran ran = run_ranks(test::round_ideal(), {looker, sleeper}, options);
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
}

// Sixteen ranks that each wait for three others, round by round: sleeping changes no completion.
TEST(Sleep, ChangesNoTime) {
  constexpr std::uint32_t ranks = 16;
  constexpr std::uint32_t neighbours = 3;
  const auto run = [](bool sleeps) {
    std::vector<RankProgram> programs;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      programs.emplace_back([rank, sleeps](ipc::Client& client) {
        client.progress().begin_wait();
        for (std::uint32_t round = 0; round < 20; ++round) {
          client.charge(1000 * ((rank * 7 + round) % 5));
          for (std::uint32_t step = 1; step <= neighbours; ++step) {
            client.charge(2000);
            post_word(client, (rank + step * step) % ranks, true);
          }
          // Whichever come first: one of a neighbour that is ahead counts, too.
          for (std::uint32_t left = neighbours; left > 0; --left) {
            if (client.poll(sleeps ? left : 1) == nullptr) _exit(9);
            client.charge(500);
            client.pop();
          }
        }
        leave(client);
      });
    }
    return run_ranks(test::machine("ape16"), programs).report;
  };
  const SessionReport awake = run(false);
  const SessionReport asleep = run(true);
  ASSERT_EQ(awake.outcome, SessionReport::Outcome::completed) << awake.message;
  ASSERT_EQ(asleep.outcome, SessionReport::Outcome::completed) << asleep.message;
  EXPECT_EQ(awake.virtual_ps, asleep.virtual_ps);
  EXPECT_EQ(awake.trace_hash, asleep.trace_hash);
}

}  // namespace
}  // namespace apenet::test
