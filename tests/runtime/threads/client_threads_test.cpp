// Several threads of a rank use ipc::Client, with a simulator on the other side.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <set>
#include <sstream>
#include <string>

#include "runtime/threads/thread_ranks.hpp"
#include "support/machines.hpp"

namespace apenet::test {
namespace {

constexpr std::uint32_t threads = 4;
constexpr int rounds = 10'000;

void send_word(ipc::Client& client, std::uint32_t target, std::uint64_t word) {
  ipc::Request request;
  request.target = target;
  request.bytes = sizeof word;
  request.inline_length = sizeof word;
  std::memcpy(request.inline_data, &word, sizeof word);
  client.post(request);
}

// All threads share one clock: it contains what each thread charges, and no thread sees it go back.
TEST(ClientThreads, ClockLosesNothingAndNeverGoesBack) {
  constexpr std::int64_t charges = 100'000;
  constexpr std::int64_t step_ps = 1000;
  const SessionReport report =
      run_thread_ranks(test::round_ideal(), {[](ThreadRank& rank) {
                         ipc::Client& client = rank.client;
                         std::atomic<bool> ended{false};
                         std::thread reader([&] {
                           for (std::int64_t before = 0; !ended;) {
                             const std::int64_t now = client.clock_ps();
                             EXPECT_GE(now, before);
                             before = now;
                           }
                         });
                         in_threads(threads, [&client](std::uint32_t thread) {
                           for (std::int64_t i = 0; i < charges; ++i) {
                             thread % 2 == 0 ? client.charge(step_ps) : client.charge_compute(step_ps);
                           }
                         });
                         ended = true;
                         reader.join();
                         EXPECT_EQ(client.clock_ps(), threads * charges * step_ps);
                         EXPECT_EQ(client.block().clock.computed_ps.get(), threads / 2 * charges * step_ps);
                       }});
  EXPECT_EQ(report.virtual_ps, threads * charges * step_ps);
}

// Reads the clock like clock_gettime and MPI_Wtime, while other threads post and take messages.
TEST(ClientThreads, ReadsOfTheClockBesideMessages) {
  constexpr std::uint64_t words = 300;
  const auto plays = [](ThreadRank& rank) {
    ipc::Client& client = rank.client;
    const std::uint32_t other = 1 - client.rank();
    std::atomic<std::uint64_t> sum{0};
    std::atomic<std::uint64_t> taken{0};
    std::atomic<bool> ended{false};
    std::thread reader([&] {
      for (std::int64_t before = 0; !ended;) {
        client.charge_clock_read();
        const std::int64_t now = client.clock_ps();
        EXPECT_GE(now, before);
        before = now;
      }
    });
    in_threads(threads, [&](std::uint32_t thread) {
      for (std::uint64_t word = 1; word <= words; ++word) {
        client.lock();
        send_word(client, other, thread * words + word);
        client.unlock();
        for (bool got = false; !got;) {
          client.lock();
          if (const ipc::Event* event = taken < threads * words ? client.poll() : nullptr) {
            std::uint64_t value = 0;
            std::memcpy(&value, event->inline_data, sizeof value);
            sum += value;
            client.pop();
            ++taken;
            got = true;
          }
          client.unlock();
          got = got || taken == threads * words;
        }
      }
    });
    ended = true;
    reader.join();
    constexpr std::uint64_t all = threads * words;
    EXPECT_EQ(taken, all);
    EXPECT_EQ(sum, all * (all + 1) / 2);
  };
  const SessionReport report = run_thread_ranks(test::round_ideal(), {plays, plays});
  EXPECT_EQ(report.messages, 2 * threads * words);
  EXPECT_TRUE(std::any_of(report.warnings.begin(), report.warnings.end(), [](const std::string& warning) {
    return warning.find("several threads called MPI") == 0;
  }));
}

// One thread leaves, as in MPI_Finalize, while others sleep in virtual time and continue after it.
TEST(ClientThreads, OneLeavesWhileOthersSleep) {
  for (int run = 0; run < 20; ++run) {
    const auto sleeps_and_leaves = [run](ThreadRank& rank) {
      ipc::Client& client = rank.client;
      std::atomic<std::uint32_t> asleep{0};
      in_threads(threads, [&](std::uint32_t thread) {
        if (thread == 0) {
          client.lock();
          send_word(client, 1 - client.rank(), 1);
          client.unlock();
          while (asleep < threads - 1) std::this_thread::yield();
          std::this_thread::sleep_for(std::chrono::microseconds(10 * run));
          client.finish();
          return;
        }
        for (int i = 0; i < 100; ++i) {
          client.lock();
          client.block().clock.charge(1'000'000);
          client.settle();
          client.unlock();
          if (i == 5) ++asleep;
        }
      });
    };
    run_thread_ranks(test::round_ideal(), {sleeps_and_leaves, sleeps_and_leaves});
  }
}

// Two threads have sessions: exactly one of them closes the last session.
TEST(ClientThreads, ExactlyOneThreadClosesTheLastSession) {
  run_thread_ranks(test::round_ideal(), {[](ThreadRank& rank) {
                     ipc::Client& client = rank.client;
                     std::atomic<int> last{0};
                     std::atomic<int> arrived{0};
                     in_threads(2, [&](std::uint32_t) {
                       for (int round = 0; round < rounds; ++round) {
                         client.opened();
                         for (++arrived; arrived < 4 * round + 2;) std::this_thread::yield();
                         last += client.closed() ? 1 : 0;
                         for (++arrived; arrived < 4 * round + 4;) std::this_thread::yield();
                       }
                     });
                     EXPECT_EQ(last, rounds);
                   }});
}

// Without MPI, virtual time begins once, with whichever thread joins first.
TEST(ClientThreads, SeveralJoinAtOnce) {
  const auto joins = [](ThreadRank& rank) {
    ipc::Client& client = rank.client;
    in_threads(threads, [&](std::uint32_t) {
      client.lock();
      EXPECT_TRUE(client.join());
      EXPECT_TRUE(client.started());
      client.charge(1000);
      client.unlock();
    });
    EXPECT_EQ(client.clock_ps(), threads * 1000);
    client.lock();
    send_word(client, 1 - client.rank(), 1);
    while (client.poll() == nullptr) continue;
    client.pop();
    client.unlock();
    client.finish();  // the simulator reads what is left once a rank has ended
  };
  const SessionReport report =
      run_thread_ranks(test::round_ideal(), {joins, joins}, {}, ThreadBegin::by_the_program);
  EXPECT_EQ(report.messages, 2U);
}

// The ranks' output arrives complete and in the order of virtual time, however many threads charge time
// meanwhile.
TEST(ClientThreads, OutputIsForwardedMeanwhile) {
  int sink[2];
  ASSERT_EQ(pipe2(sink, O_CLOEXEC), 0);
  SessionOptions options;
  options.output_fd = options.error_fd = sink[1];
  const auto prints = [](ThreadRank& rank) {
    ipc::Client& client = rank.client;
    in_threads(threads, [&](std::uint32_t thread) {
      for (int line = 0; line < 20; ++line) {
        client.lock();
        client.charge(1000);
        dprintf(rank.output_fd, "rank %u thread %u line %d\n", client.rank(), thread, line);
        send_word(client, 1 - client.rank(), 1);
        client.settle();
        client.unlock();
      }
    });
  };
  run_thread_ranks(test::round_ideal(), {prints, prints}, options);
  close(sink[1]);
  std::string text(1 << 16, '\0');
  std::size_t length = 0;
  for (ssize_t more = 1; more > 0; length += static_cast<std::size_t>(std::max<ssize_t>(more, 0)))
    more = read(sink[0], text.data() + length, text.size() - length);
  close(sink[0]);
  text.resize(length);
  std::set<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.insert(line);
  EXPECT_EQ(lines.size(), 2U * threads * 20U) << text;
}

}  // namespace
}  // namespace apenet::test
