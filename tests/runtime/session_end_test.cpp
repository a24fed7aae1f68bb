// How runs of real processes end: deadlocks, failures, exits and interrupts, and the output that is kept.
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <new>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "ranks.hpp"
#include "runtime/fork_with_test.hpp"
#include "runtime/launch/host_work.hpp"

namespace apenet::test {
namespace {

TEST(SessionEnd, ADeadlockReportNamesWhichRankWaitsForWhich) {
  const auto waits = [](int source) {
    return [source](ipc::Client& client) {
      client.block().note = {
          .receives = 1, .receive_source = source, .receive_tag = 5, .sends = 0, .send_target = -1};
      receive_word(client);
    };
  };
  const Ran ran = run_ranks(test::round_ideal(), {waits(1), waits(0)});
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::deadlock);
  EXPECT_NE(ran.report.exit_status, 0);
  EXPECT_NE(ran.report.message.find("rank 0: waits for a message from rank 1, tag 5"), std::string::npos)
      << ran.report.message;
}

TEST(SessionEnd, AKilledRankEndsTheRunAndTheOutputOfOthersIsKept) {
  const auto killed = [](ipc::Client& client) {
    receive_word(client);
    raise(SIGKILL);
  };
  const auto other = [](ipc::Client& client) {
    std::printf("still here\n");
    std::fflush(stdout);
    send_word(client, 0, 1);
    receive_word(client);
  };
  const Ran ran = run_ranks(test::round_ideal(), {killed, other});
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::failed);
  EXPECT_EQ(ran.report.exit_status, 128 + SIGKILL);
  EXPECT_EQ(ran.output, "still here\n");
}

// Nothing is left that could send to the other rank, which polls for messages and works in between.
TEST(SessionEnd, ARankThatPollsComesToRestWhenAnotherHasFailed) {
  const auto killed = [](ipc::Client& client) {
    receive_word(client);
    raise(SIGKILL);
  };
  const auto polls = [](ipc::Client& client) {
    send_word(client, 0, 1);
    for (int i = 0;; ++i) {
      client.settle();
      if (i % 10 == 0) std::printf("%lld\n", static_cast<long long>(client.clock_ps()));
      std::fflush(stdout);
      client.charge(100'000);
    }
  };
  const Ran ran = run_ranks(test::round_ideal(), {killed, polls});
  EXPECT_EQ(ran.report.exit_status, 128 + SIGKILL);
  EXPECT_EQ(ran.report.warnings, std::vector<std::string>{});
  EXPECT_EQ(ran.output, "0\n1000000\n");
}

TEST(SessionEnd, AnExitStatusIsPassedOn) {
  const Ran ran = run_ranks(test::round_ideal(), {[](ipc::Client&) { _exit(7); },
                                                  [](ipc::Client& client) { receive_word(client); }});
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::failed);
  EXPECT_EQ(ran.report.exit_status, 7);
}

TEST(SessionEnd, AnExitWithoutFinalizeIsAFailureIfAnotherRankWaits) {
  const Ran ran = run_ranks(test::round_ideal(), {[](ipc::Client&) {},
                                                  [](ipc::Client& client) {
                                                    receive_word(client);
                                                    leave(client);
                                                  }});
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::failed);
  EXPECT_NE(ran.report.message.find("MPI_Finalize"), std::string::npos) << ran.report.message;
}

TEST(SessionEnd, AnExitWithoutFinalizePassesWithAWarningIfNobodyWaits) {
  const Ran ran = run_ranks(test::round_ideal(), {[](ipc::Client& client) { send_word(client, 1, 1); },
                                                  [](ipc::Client& client) {
                                                    receive_word(client);
                                                    leave(client);
                                                  }});
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
  ASSERT_EQ(ran.report.warnings.size(), 1U);
  EXPECT_EQ(ran.report.warnings[0],
            "rank 0 exited without calling MPI_Finalize, which MPI requires: mpiexec lets that pass");
}

// The simulator checks every 20 ms for processes that scripts have started. Where it does is by chance.
TEST(SessionEnd, AProgramBehindAScriptMayEndBeforeAnyoneHasLookedForIt) {
  const auto sends = [](ipc::Client& client) {
    send_word(client, 1, 1);
    leave(client);
  };
  const auto receives = [](ipc::Client& client) {
    receive_word(client);
    leave(client);
  };
  for (int runs = 0; runs < 8; ++runs) {
    const Ran ran = run_ranks(
        test::round_ideal(), {sends, receives}, {}, [] { return false; }, Begin::behind_a_script);
    EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
    ASSERT_EQ(ran.report.warnings, std::vector<std::string>{});
  }
}

TEST(SessionEnd, ARunWithoutMessagesDidNotUseTheNetwork) {
  const Ran ran = run_ranks(test::round_ideal(), {leave, leave});
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::failed);
  EXPECT_EQ(ran.report.exit_status, 2);
}

TEST(SessionEnd, AnInterruptEndsEverything) {
  int asked = 0;
  const Ran ran =
      run_ranks(test::round_ideal(), {[](ipc::Client&) { pause(); }, [](ipc::Client&) { pause(); }}, {},
                [&asked] { return ++asked > 3; });
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::interrupted);
  EXPECT_EQ(ran.report.exit_status, 130);
}

// Output of a rank that computes for long is forwarded at once: here its line ends the run.
TEST(SessionEnd, LinesAreForwardedWhileARankRuns) {
  int seen[2];
  ASSERT_EQ(pipe2(seen, O_CLOEXEC | O_NONBLOCK), 0);
  SessionOptions options;
  options.output_fd = seen[1];
  options.error_fd = seen[1];
  const auto endless = [](ipc::Client&) {
    std::printf("at work\n");
    std::fflush(stdout);
    for (;;) pause();
  };
  const Ran ran = run_ranks(test::round_ideal(), {endless}, options, [&seen] {
    char byte = 0;
    return read(seen[0], &byte, 1) == 1;
  });
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::interrupted);
  close(seen[0]);
  close(seen[1]);
}

TEST(SessionEnd, OutputIsInRankOrderWithinAStepAndLosesNothing) {
  const auto prints = [](std::uint32_t rank) {
    return [rank](ipc::Client& client) {
      if (rank == 2) usleep(20'000);  // wall time must not matter
      const std::string big(200'000, static_cast<char>('a' + rank));
      std::printf("%s\n", big.c_str());
      std::fflush(stdout);
      send_word(client, (rank + 1) % 3, 1);
      receive_word(client);
      leave(client);
    };
  };
  const Ran ran = run_ranks(test::round_ideal(), {prints(0), prints(1), prints(2)});
  ASSERT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
  std::string expected;
  for (const char letter : {'a', 'b', 'c'}) expected += std::string(200'000, letter) + "\n";
  EXPECT_EQ(ran.output, expected);
}

// Ranks print at different times, leave, and continue to print; one of them is slow in the host.
Ran print_at_own_times(std::uint32_t slow) {
  const auto prints = [slow](std::uint32_t rank) {
    return [rank, slow](ipc::Client& client) {
      const auto say = [rank, slow, &client](const char* what) {
        if (rank == slow) usleep(3'000);
        std::printf("%lld rank %u %s\n", static_cast<long long>(client.clock_ps()), rank, what);
        std::fflush(stdout);
      };
      for (int step = 0; step < 4; ++step) {
        say("begins");
        client.charge(2'500'000 - 1'000'000 * rank);
        send_word(client, (rank + 1) % 3, 1);
        receive_word(client);
      }
      leave(client);
      say("has left");
    };
  };
  return run_ranks(test::round_ideal(), {prints(0), prints(1), prints(2)});
}

TEST(SessionEnd, LinesComeInTheOrderOfVirtualTime) {
  const Ran ran = print_at_own_times(0);
  ASSERT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
  std::istringstream text(ran.output);
  std::vector<std::pair<long long, std::string>> lines;
  for (std::string line; std::getline(text, line);) {
    const std::size_t blank = line.find(' ');
    lines.emplace_back(std::stoll(line), line.substr(blank, std::string(" rank 0").size()));
  }
  EXPECT_EQ(lines.size(), 15U);
  EXPECT_TRUE(std::is_sorted(lines.begin(), lines.end())) << ran.output;
  EXPECT_EQ(print_at_own_times(1).output, ran.output);
  EXPECT_EQ(print_at_own_times(2).output, ran.output);
}

// A process that a rank leaves behind holds the pipe open and never ends.
TEST(SessionEnd, AProcessThatHoldsThePipeDoesNotBlockTheRun) {
  const auto begets = [](ipc::Client& client) {
    send_word(client, 1, 1);
    leave(client);
    // It outlives the rank that has started it, and ends by itself if nobody ends it.
    constexpr unsigned most_seconds = 600;
    if (fork() == 0) {
      alarm(most_seconds);
      for (;;) pause();
    }
  };
  const auto other = [](ipc::Client& client) {
    receive_word(client);
    leave(client);
    std::printf("other\n");
  };
  const Ran ran = run_ranks(test::round_ideal(), {begets, other});
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
  EXPECT_EQ(ran.output, "other\n");
}

// The first failure in virtual time decides, not the first one in the host; the message lists the others.
TEST(SessionEnd, TheFirstFailureInVirtualTimeDecides) {
  const auto fails = [](std::int64_t after_ps, useconds_t pause_us, int status) {
    return [=](ipc::Client& client) {
      client.charge(after_ps);
      usleep(pause_us);
      _exit(status);
    };
  };
  const Ran ran = run_ranks(test::round_ideal(),
                            {fails(5'000'000, 0, 3), fails(2'000'000, 30'000, 4), fails(9'000'000, 0, 3)});
  EXPECT_EQ(ran.report.exit_status, 4);
  EXPECT_EQ(ran.report.message, "rank 1 exited with status 4\n  then ranks 0, 2 exited with status 3");
}

// Rank 0 fails at 100 us. The others are at 3 us then if the host is slow, and continue to 100 us.
TEST(SessionEnd, OthersContinueUntilTheFailure) {
  const auto play = [](useconds_t pause_us) {
    const auto fails = [](ipc::Client& client) {
      client.charge(100'000'000);
      _exit(3);
    };
    const auto talks = [pause_us](std::uint32_t rank) {
      return [rank, pause_us](ipc::Client& client) {
        for (;;) {
          send_word(client, 3 - rank, 1);
          receive_word(client);
          if (client.clock_ps() % 10 < 5) usleep(pause_us);
          std::printf("%lld %u\n", static_cast<long long>(client.clock_ps()), rank);
          std::fflush(stdout);
        }
      };
    };
    return run_ranks(test::round_ideal(), {fails, talks(1), talks(2)});
  };
  const Ran fast = play(0);
  const Ran slow = play(200);
  EXPECT_EQ(fast.report.exit_status, 3);
  EXPECT_NE(fast.output.find("99792000 1\n99792000 2\n"), std::string::npos) << fast.output;
  EXPECT_EQ(fast.output, slow.output);
  EXPECT_EQ(fast.report.virtual_ps, slow.report.virtual_ps);
  EXPECT_EQ(fast.report.trace_hash, slow.report.trace_hash);
}

TEST(SessionEnd, OutputOfARankThatHasLeftIsKeptIfAnotherFails) {
  const auto fails = [](ipc::Client&) { _exit(3); };
  const auto talks = [](ipc::Client& client) {
    leave(client);
    usleep(50'000);
    std::printf("the last word\n");
  };
  const Ran ran = run_ranks(test::round_ideal(), {fails, talks});
  EXPECT_EQ(ran.report.exit_status, 3);
  EXPECT_EQ(ran.output, "the last word\n");
}

// A process in a group of its own, stopped.
pid_t start_stopped() {
  const pid_t process = test::fork_with_test();
  if (process == 0) {
    setpgid(0, 0);
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  waitpid(process, &status, WUNTRACED);
  return process;
}

TEST(SessionEnd, AStoppedRankIsWaitedFor) {
  const pid_t process = start_stopped();
  const std::vector<int> groups{process};
  HostWork work;
  bool is_hopeless = false;
  // Longer than a process is waited for that sleeps.
  for (int i = 0; i < 35 && !is_hopeless; ++i) {
    is_hopeless = work.is_hopeless(groups, std::chrono::milliseconds(50));
    std::this_thread::sleep_for(std::chrono::milliseconds(101));
  }
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
  EXPECT_FALSE(is_hopeless);
}

// Once it is named, the rank is let go on, and the run ends as if nothing had been.
TEST(SessionEnd, ARankThatIsStoppedOutsideVirtualTimeIsNamed) {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* const stopped = new (page) std::atomic<pid_t>{0};
  for (const Begin begin : {Begin::by_the_program, Begin::at_the_barrier}) {
    const auto program = [&](bool stops) {
      return [stops, begin, stopped](ipc::Client& client) {
        const auto stop = [&] {
          if (!stops) return;
          stopped->store(getpid());
          raise(SIGSTOP);
        };
        if (begin == Begin::by_the_program) {
          stop();
          client.block().identity.used_network = 1;
          client.start();
        }
        send_word(client, stops ? 0 : 1, 0);
        receive_word(client);
        leave(client);
        if (begin == Begin::at_the_barrier) stop();
      };
    };
    int notices[2];
    ASSERT_EQ(pipe2(notices, O_CLOEXEC | O_NONBLOCK), 0);
    SessionOptions options;
    options.busy_notice_ms = 100;
    options.output_fd = options.error_fd = notices[1];
    std::string said;
    const Ran ran = run_ranks(
        test::round_ideal(), {program(false), program(true)}, options,
        [&] {
          std::array<char, 256> text{};
          const ssize_t bytes = read(notices[0], text.data(), text.size());
          if (bytes > 0) said.append(text.data(), static_cast<std::size_t>(bytes));
          if (bytes > 0) kill(stopped->load(), SIGCONT);
          return false;
        },
        begin);
    EXPECT_EQ(
        said,
        "apenet: rank 1 is stopped by a signal, and SIGCONT would let it go on; the run waits for it\n");
    EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
    for (const int end : notices) close(end);
  }
  munmap(page, 4096);
}

TEST(SessionEnd, ARankThatNeverComesToRestIsEndedAndNamed) {
  const auto computes = [](ipc::Client&) {
    for (volatile int forever = 1; forever;) continue;
  };
  SessionOptions options;
  options.drain_cpu_ms = 50;
  const Ran ran = run_ranks(test::round_ideal(), {computes, [](ipc::Client&) { _exit(3); }}, options);
  EXPECT_EQ(ran.report.exit_status, 3);
  ASSERT_EQ(ran.report.warnings.size(), 1U);
  EXPECT_EQ(ran.report.warnings[0].find("rank 0 still ran"), 0U) << ran.report.warnings[0];
}

}  // namespace
}  // namespace apenet::test
