// Real processes in virtual time: what they observe, and how runs end.
#include "runtime/session.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <algorithm>

#include <csignal>
#include <cstring>
#include <sstream>

#include "ranks.hpp"
#include "support/forbidden_memory.hpp"

namespace apenet::test {
namespace {

constexpr int rounds = 50;

RankProgram ping(bool first) {
  return [first](ipc::Client& client) {
    for (std::uint64_t round = 0; round < rounds; ++round) {
      if (first) send_word(client, 1, round);
      if (receive_word(client) != round) _exit(9);
      if (!first) send_word(client, 0, round);
    }
    leave(client);
  };
}

TEST(Session, PingPongTakesTheModelledTimeInEveryRun) {
  const Ran a = run_ranks(test::round_ideal(), {ping(true), ping(false)});
  const Ran b = run_ranks(test::round_ideal(), {ping(true), ping(false)});
  ASSERT_EQ(a.report.outcome, SessionReport::Outcome::completed) << a.report.message;
  EXPECT_EQ(a.report.messages, 2U * rounds);
  // Per message: 1 us of latency and 8 bytes at 1 GB/s. No software costs are charged here.
  EXPECT_EQ(a.report.virtual_ps, 2 * rounds * (1'000'000 + 8'000));
  EXPECT_EQ(a.report.trace_hash, b.report.trace_hash);
  EXPECT_EQ(a.report.virtual_ps, b.report.virtual_ps);
}

TEST(Session, ManyRanksOnATorusRepeatExactly) {
  const auto program = [](std::uint32_t rank) {
    return [rank](ipc::Client& client) {
      for (std::uint32_t step = 1; step < 16; ++step) {
        client.charge(1000 * ((rank * 7 + step) % 5));
        send_word(client, (rank + step) % 16, step);
        receive_word(client);
      }
      leave(client);
    };
  };
  std::vector<RankProgram> programs;
  for (std::uint32_t rank = 0; rank < 16; ++rank) programs.push_back(program(rank));
  const Ran a = run_ranks(test::machine("ape16"), programs);
  const Ran b = run_ranks(test::machine("ape16"), programs);
  ASSERT_EQ(a.report.outcome, SessionReport::Outcome::completed) << a.report.message;
  EXPECT_EQ(a.report.messages, 16U * 15U);
  EXPECT_EQ(a.report.trace_hash, b.report.trace_hash);
}

// A rank that is busy in the host stops virtual time. This is reported once and changes nothing.
TEST(Session, ARankThatIsBlockedInTheHostIsNamed) {
  const auto late = [](useconds_t pause_us) {
    return [pause_us](ipc::Client& client) {
      for (std::uint64_t round = 0; round < 2; ++round) {
        receive_word(client);
        usleep(pause_us);
        send_word(client, 0, round);
      }
      leave(client);
    };
  };
  const auto other = [](ipc::Client& client) {
    for (std::uint64_t round = 0; round < 2; ++round) {
      send_word(client, 1, round);
      receive_word(client);
    }
    leave(client);
  };
  SessionOptions options;
  options.busy_notice_ms = 50;
  const Ran slow = run_ranks(test::round_ideal(), {other, late(200'000)}, options);
  const Ran fast = run_ranks(test::round_ideal(), {other, late(0)});
  const std::size_t told = slow.output.find("apenet: rank 1 has been busy in the host for 0.");
  ASSERT_NE(told, std::string::npos) << slow.output;
  EXPECT_NE(slow.output.find("it sleeps"), std::string::npos) << slow.output;
  EXPECT_EQ(slow.output.find("apenet: rank", told + 1), std::string::npos) << slow.output;
  EXPECT_EQ(fast.output, "");
  EXPECT_EQ(slow.report.outcome, SessionReport::Outcome::completed) << slow.report.message;
  EXPECT_EQ(slow.report.virtual_ps, fast.report.virtual_ps);
  EXPECT_EQ(slow.report.trace_hash, fast.report.trace_hash);
}

Ran put_once() {
  // The address is the same in both ranks, because both are forks of one process.
  static std::uint64_t window[1000];
  const auto origin = [](ipc::Client& client) {
    std::vector<std::uint64_t> source(1000, 42);
    ipc::Request request;
    request.verb = ipc::RequestVerb::put;
    request.flags = ipc::want_local | ipc::want_remote | ipc::notify_target;
    request.target = 1;
    request.bytes = 8000;
    request.local_address = reinterpret_cast<std::uint64_t>(source.data());
    request.remote_address = reinterpret_cast<std::uint64_t>(window);
    request.immediate = 77;
    client.post(request);
    await(client, ipc::EventKind::sent);
    // `sent` has arrived, so the buffer may be reused while the bytes are in transit.
    std::fill(source.begin(), source.end(), 0);
    await(client, ipc::EventKind::remote_done);
    leave(client);
  };
  const auto target = [](ipc::Client& client) {
    const ipc::Event event = await(client, ipc::EventKind::put_arrived);
    if (event.immediate != 77 || event.fault != ipc::AccessFault::none || window[0] != 42 ||
        window[999] != 42)
      _exit(9);
    leave(client);
  };
  return run_ranks(test::machine("ape16"), {origin, target});
}

Ran get_once() {
  static std::uint64_t window[1000];
  const auto origin = [](ipc::Client& client) {
    std::vector<std::uint64_t> sink(1000, 0);
    receive_word(client);
    ipc::Request request;
    request.verb = ipc::RequestVerb::get;
    request.target = 1;
    request.bytes = 8000;
    request.local_address = reinterpret_cast<std::uint64_t>(sink.data());
    request.remote_address = reinterpret_cast<std::uint64_t>(window);
    client.post(request);
    if (await(client, ipc::EventKind::got).fault != ipc::AccessFault::none || sink[999] != 5) _exit(9);
    send_word(client, 1, 0);
    leave(client);
  };
  const auto target = [](ipc::Client& client) {
    std::fill(std::begin(window), std::end(window), 5);
    send_word(client, 0, 1);
    receive_word(client);
    leave(client);
  };
  return run_ranks(test::machine("ape16"), {origin, target});
}

Ran put_outside() {
  const auto origin = [](ipc::Client& client) {
    std::uint64_t word = 1;
    ipc::Request request;
    request.verb = ipc::RequestVerb::put;
    request.flags = ipc::want_remote;
    request.target = 1;
    request.bytes = sizeof word;
    request.local_address = reinterpret_cast<std::uint64_t>(&word);
    request.remote_address = 4096;  // no memory is mapped there
    client.post(request);
    if (await(client, ipc::EventKind::remote_done).fault == ipc::AccessFault::none) _exit(9);
    send_word(client, 1, 0);
    leave(client);
  };
  const auto target = [](ipc::Client& client) {
    receive_word(client);
    leave(client);
  };
  return run_ranks(test::machine("ape16"), {origin, target});
}

TEST(Session, PutWritesTheOtherProcessesMemory) {
  const Ran ran = put_once();
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
}

TEST(Session, GetReadsWithoutHelpOfTheTarget) {
  const Ran ran = get_once();
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
}

TEST(Session, APutOutsideTheTargetsMemoryFailsAndIsCounted) {
  const Ran ran = put_outside();
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
  const std::vector<std::string>& warnings = ran.report.warnings;
  EXPECT_EQ(std::count_if(warnings.begin(), warnings.end(),
                          [](const std::string& warning) {
                            return warning.find("puts or gets failed") != warning.npos;
                          }),
            1);
  // The second warning is about the acknowledgement, which the card's model assumes.
  EXPECT_EQ(warnings.size(), 2U);
}

// Ends a forked test with its result as exit status.
[[noreturn]] void end_with(const Ran& forbidden, const Ran& allowed) {
  if (forbidden.report.outcome != SessionReport::Outcome::completed) _exit(4);
  if (forbidden.report.virtual_ps != allowed.report.virtual_ps) _exit(5);
  if (forbidden.report.trace_hash != allowed.report.trace_hash) _exit(6);
  if (forbidden.report.warnings != allowed.report.warnings) _exit(7);
  _exit(0);
}

// Puts, gets and wrong addresses give the same results if the processes themselves have to copy.
using Exchange = Ran (*)();
class ForbiddenMemory : public testing::TestWithParam<Exchange> {};
TEST_P(ForbiddenMemory, MakesNoDifference) {
  EXPECT_EXIT(
      {
        const Ran allowed = GetParam()();
        forbid_the_memory_of_others();
        end_with(GetParam()(), allowed);
      },
      testing::ExitedWithCode(0), "");
}
INSTANTIATE_TEST_SUITE_P(Session, ForbiddenMemory, testing::Values(put_once, get_once, put_outside));

// A process that only looks sees the true state: the message is visible from its arrival on, not before.
TEST(Session, LookingIsTruthful) {
  const auto sender = [](ipc::Client& client) {
    client.charge(3'000'000);
    send_word(client, 1, 1);
    leave(client);
  };
  const auto looker = [](ipc::Client& client) {
    client.progress().begin_look();
    std::int64_t before_ps = client.clock_ps();
    const ipc::Event* event = client.poll();
    while (event == nullptr) {
      client.charge(1000);  // one look per ns
      before_ps = client.clock_ps();
      event = client.poll();
    }
    std::printf("%lld\n", static_cast<long long>(before_ps));
    leave(client);
  };
  const Ran ran = run_ranks(test::round_ideal(), {sender, looker});
  ASSERT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
  EXPECT_EQ(ran.output, "4008000\n");
}

TEST(Session, FullRingsLoseNothing) {
  constexpr std::uint64_t count = 5000;  // many times the size of the rings
  const auto sender = [](ipc::Client& client) {
    for (std::uint64_t word = 0; word < count; ++word) send_word(client, 1, word);
    leave(client);
  };
  const auto receiver = [](ipc::Client& client) {
    for (std::uint64_t word = 0; word < count; ++word) {
      if (receive_word(client) != word) _exit(9);
    }
    leave(client);
  };
  const Ran ran = run_ranks(test::machine("ape16"), {sender, receiver});
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
  EXPECT_EQ(ran.report.messages, count);
}

TEST(Session, SlotsAreReturned) {
  const auto sender = [](ipc::Client& client) {
    for (std::uint32_t round = 0; round < 3 * ipc::slots_per_process; ++round) {
      ipc::Request request;
      request.target = 1;
      request.bytes = 1024;
      request.slot = client.take_slot();
      if (request.slot == ipc::no_slot) _exit(8);
      request.slot_length = 1024;
      std::memset(client.slot_data(0, request.slot), static_cast<int>(round), 1024);
      client.post(request);
      if (round % 64 == 63) receive_word(client);
    }
    leave(client);
  };
  const auto receiver = [](ipc::Client& client) {
    for (std::uint32_t round = 0; round < 3 * ipc::slots_per_process; ++round) {
      const ipc::Event event = await(client, ipc::EventKind::arrived);
      if (client.slot_data(0, event.slot)[1023] != static_cast<std::byte>(round)) _exit(9);
      client.return_slot(0, event.slot);
      if (round % 64 == 63) send_word(client, 0, 0);
    }
    leave(client);
  };
  const Ran ran = run_ranks(test::round_ideal(), {sender, receiver});
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
}

TEST(Session, ADeadlockReportNamesWhichRankWaitsForWhich) {
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

TEST(Session, AKilledRankEndsTheRunAndTheOutputOfOthersIsKept) {
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

TEST(Session, AnExitStatusIsPassedOn) {
  const Ran ran = run_ranks(test::round_ideal(), {[](ipc::Client&) { _exit(7); },
                                                  [](ipc::Client& client) { receive_word(client); }});
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::failed);
  EXPECT_EQ(ran.report.exit_status, 7);
}

TEST(Session, AnExitWithoutFinalizeIsAFailure) {
  const Ran ran =
      run_ranks(test::round_ideal(), {[](ipc::Client&) {}, [](ipc::Client& client) { leave(client); }});
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::failed);
  EXPECT_NE(ran.report.message.find("MPI_Finalize"), std::string::npos);
}

TEST(Session, ARunWithoutMessagesDidNotUseTheNetwork) {
  const Ran ran = run_ranks(test::round_ideal(), {leave, leave});
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::failed);
  EXPECT_EQ(ran.report.exit_status, 2);
}

TEST(Session, AnInterruptEndsEverything) {
  int asked = 0;
  const Ran ran =
      run_ranks(test::round_ideal(), {[](ipc::Client&) { pause(); }, [](ipc::Client&) { pause(); }}, {},
                [&asked] { return ++asked > 3; });
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::interrupted);
  EXPECT_EQ(ran.report.exit_status, 130);
}

// Output of a rank that computes for long is forwarded at once: here its line ends the run.
TEST(Session, LinesAreForwardedWhileARankRuns) {
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

TEST(Session, OutputIsInRankOrderWithinAStepAndLosesNothing) {
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

TEST(Session, LinesComeInTheOrderOfVirtualTime) {
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
TEST(Session, AProcessThatHoldsThePipeDoesNotBlockTheRun) {
  const auto begets = [](ipc::Client& client) {
    send_word(client, 1, 1);
    leave(client);
    if (fork() == 0) {
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
TEST(Session, TheFirstFailureInVirtualTimeDecides) {
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
TEST(Session, OthersContinueUntilTheFailure) {
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

TEST(Session, OutputOfARankThatHasLeftIsKeptIfAnotherFails) {
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

TEST(Session, ARankThatNeverComesToRestIsEndedAndNamed) {
  const auto computes = [](ipc::Client&) {
    for (volatile int forever = 1; forever;) continue;
  };
  SessionOptions options;
  options.settle_cpu_ms = 50;
  const Ran ran = run_ranks(test::round_ideal(), {computes, [](ipc::Client&) { _exit(3); }}, options);
  EXPECT_EQ(ran.report.exit_status, 3);
  ASSERT_EQ(ran.report.warnings.size(), 1U);
  EXPECT_EQ(ran.report.warnings[0].find("rank 0 had not come to rest"), 0U) << ran.report.warnings[0];
}

}  // namespace
}  // namespace apenet::test
