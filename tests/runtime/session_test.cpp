// Real processes in virtual time: what they observe.
#include "runtime/session.hpp"
#include "runtime/fork_with_test.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <functional>
#include <new>

#include "ranks.hpp"
#include "runtime/launch/host_thread.hpp"
#include "runtime/launch/wait_text.hpp"
#include "support/forbidden_memory.hpp"

namespace apenet::test {
namespace {

constexpr int session_rounds = 50;

RankProgram ping(bool first) {
  return [first](ipc::Client& client) {
    for (std::uint64_t round = 0; round < session_rounds; ++round) {
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
  EXPECT_EQ(a.report.messages, 2U * session_rounds);
  // Per message: 1 us of latency and 8 bytes at 1 GB/s. No software costs are charged here.
  EXPECT_EQ(a.report.virtual_ps, 2 * session_rounds * (1'000'000 + 8'000));
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

// A rank that is busy in the host stops virtual time. This is reported once and changes nothing. The rank
// stays busy until it has been named; it is the first one, because the others are busy, too, where the host
// lets them wait.
TEST(Session, ARankThatIsBlockedInTheHostIsNamed) {
  int notices[2];
  ASSERT_EQ(pipe2(notices, O_CLOEXEC | O_NONBLOCK), 0);
  const auto until_noticed = [&notices] {
    pollfd notice = {notices[0], POLLIN, 0};
    while (::poll(&notice, 1, 0) == 0) usleep(1000);
  };
  const auto ranks = [](const std::function<void()>& at_first, const std::function<void()>& then) {
    const auto late = [at_first, then](ipc::Client& client) {
      at_first();
      send_word(client, 1, 0);
      receive_word(client);
      then();
      send_word(client, 1, 1);
      leave(client);
    };
    const auto other = [](ipc::Client& client) {
      receive_word(client);
      send_word(client, 0, 0);
      receive_word(client);
      leave(client);
    };
    return std::vector<RankProgram>{late, other};
  };
  SessionOptions options;
  options.busy_notice_ms = 50;
  options.output_fd = options.error_fd = notices[1];
  const Ran slow = run_ranks(test::round_ideal(), ranks(until_noticed, [] { usleep(200'000); }), options);
  const Ran fast = run_ranks(test::round_ideal(), ranks([] {}, [] {}));
  std::array<char, 4096> buffer{};
  const std::string output(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(
                                              read(notices[0], buffer.data(), buffer.size()), 0)));
  for (const int end : notices) close(end);
  EXPECT_EQ(output.rfind("apenet: rank 0 has been busy in the host for ", 0), 0U) << output;
  EXPECT_EQ(output.find("apenet: rank", 1), std::string::npos) << output;
  EXPECT_EQ(fast.output, "");
  EXPECT_EQ(slow.report.outcome, SessionReport::Outcome::completed) << slow.report.message;
  EXPECT_EQ(slow.report.virtual_ps, fast.report.virtual_ps);
  EXPECT_EQ(slow.report.trace_hash, fast.report.trace_hash);
}

// A rank that spins in memory that it shares holds up the rank that it waits for. More than once, and also
// after the notice, which is given once.
TEST(Session, ARankThatSpinsInSharedMemoryLetsOthersGoOn) {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* flag = new (page) std::atomic<std::uint64_t>{0};
  constexpr std::uint64_t rounds = 3;
  const auto spins = [flag](ipc::Client& client) {
    client.block().grant.shares_memory = 1;
    receive_word(client);  // the simulator reads it when the rank waits
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      client.lock();  // as the provider: a rank that was suspended comes back here
      send_word(client, 1, round);
      client.unlock();
      while (flag->load() < round) continue;
    }
    leave(client);
  };
  const auto answers = [flag](ipc::Client& client) {
    client.block().grant.shares_memory = 1;
    send_word(client, 0, 0);
    for (std::uint64_t round = 1; round <= rounds; ++round) flag->store(receive_word(client));
    leave(client);
  };
  SessionOptions options;
  options.busy_notice_ms = 20;
  options.stall_timeout_ms = 100;
  options.output_fd = options.error_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
  const Ran ran = run_ranks(test::round_ideal(), {spins, answers}, options);
  close(options.error_fd);
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
  ASSERT_EQ(ran.report.warnings.size(), 1U);
  EXPECT_EQ(ran.report.warnings[0].rfind("others ran beside rank 0, which may have spun", 0), 0U)
      << ran.report.warnings[0];
  munmap(page, 4096);
}

TEST(Session, WhatABusyRankDoesIsDescribed) {
  const pid_t child = test::fork_with_test();
  if (child == 0) {
    for (;;) sleep(3600);
  }
  while (system_call(child, child).number != SYS_clock_nanosleep) usleep(1000);
  SourceLines lines;
  EXPECT_EQ(describe_work({child}, 0, lines).substr(0, 6), "sleeps");  // and where, if the host can tell
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(Session, AnyOtherSystemCallIsNamed) {
  int end_of_file[2];
  ASSERT_EQ(pipe(end_of_file), 0);
  const pid_t child = test::fork_with_test();
  if (child == 0) {
    close(end_of_file[1]);
    char byte = 0;
    // The child of the child ends with the test.
    if (vfork() == 0) _exit(static_cast<int>(read(end_of_file[0], &byte, 1)));
    _exit(0);
  }
  while (system_call(child, child).number != SYS_vfork) usleep(1000);
  SourceLines lines;
  const std::string expected = "is blocked in the system call vfork";
  EXPECT_EQ(describe_work({child}, 0, lines).substr(0, expected.size()), expected);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(end_of_file[0]);
  close(end_of_file[1]);
}

// Under the key 3.
void open_memory(ipc::Client& client, std::uint64_t address, std::uint64_t bytes, std::uint32_t access) {
  client.regions().insert(
      {.key = 3, .address = address, .length = bytes, .begin = address, .domain = 0, .access = access});
}

// `before`: what the origin does first.
Ran put_once(const std::function<void()>& before) {
  // The address is the same in both ranks, because both are forks of one process.
  static std::uint64_t window[1000];
  const auto origin = [&before](ipc::Client& client) {
    before();
    receive_word(client);
    std::vector<std::uint64_t> source(1000, 42);
    ipc::Request request;
    request.verb = ipc::RequestVerb::put;
    request.flags = ipc::want_local | ipc::want_remote | ipc::notify_target | ipc::by_key;
    request.key = 3;
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
    open_memory(client, reinterpret_cast<std::uint64_t>(window), sizeof window, ipc::may_write);
    send_word(client, 0, 1);
    const ipc::Event event = await(client, ipc::EventKind::put_arrived);
    if (event.immediate != 77 || event.fault != ipc::AccessFault::none || window[0] != 42 ||
        window[999] != 42)
      _exit(9);
    leave(client);
  };
  return run_ranks(test::machine("ape16"), {origin, target});
}

Ran put_once() {
  return put_once([] {});
}

Ran get_once() {
  static std::uint64_t window[1000];
  const auto origin = [](ipc::Client& client) {
    std::vector<std::uint64_t> sink(1000, 0);
    receive_word(client);
    ipc::Request request;
    request.verb = ipc::RequestVerb::get;
    request.flags = ipc::by_key;
    request.key = 3;
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
    open_memory(client, reinterpret_cast<std::uint64_t>(window), sizeof window, ipc::may_read);
    send_word(client, 0, 1);
    receive_word(client);
    leave(client);
  };
  return run_ranks(test::machine("ape16"), {origin, target});
}

Ran put_outside() {
  constexpr std::uint64_t unmapped = 4096;
  const auto origin = [](ipc::Client& client) {
    receive_word(client);
    std::uint64_t word = 1;
    ipc::Request request;
    request.verb = ipc::RequestVerb::put;
    request.flags = ipc::want_remote | ipc::by_key;
    request.key = 3;
    request.target = 1;
    request.bytes = sizeof word;
    request.local_address = reinterpret_cast<std::uint64_t>(&word);
    request.remote_address = unmapped;
    client.post(request);
    if (await(client, ipc::EventKind::remote_done).fault == ipc::AccessFault::none) _exit(9);
    send_word(client, 1, 0);
    leave(client);
  };
  const auto target = [](ipc::Client& client) {
    open_memory(client, unmapped, sizeof(std::uint64_t), ipc::may_write);
    send_word(client, 0, 1);
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

// As put_once(), by a program that clears its environment.
Ran put_without_environment() {
  return put_once([] { clearenv(); });
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
INSTANTIATE_TEST_SUITE_P(Session, ForbiddenMemory,
                         testing::Values(static_cast<Exchange>(put_once), put_without_environment, get_once,
                                         put_outside));

// A process that only looks sees the true state: the message is visible from its arrival on, not before.
TEST(Session, LookingIsTruthful) {
  const auto sender = [](ipc::Client& client) {
    client.charge(3'000'000);
    send_word(client, 1, 1);
    leave(client);
  };
  const auto looker = [](ipc::Client& client) {
    client.progress().begin_test();
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

// One receiver keeps all slots that it gets, another has left, and the third takes nothing for a while.
TEST(Session, NeverLacksSlots) {
  constexpr std::uint32_t rounds = 2 * ipc::slots_per_process;
  const auto sender = [](ipc::Client& client) {
    for (std::uint32_t round = 0; round < 3 * rounds; ++round) {
      ipc::Request request;
      request.target = 1 + round % 3;
      request.bytes = 512;
      if (!client.frees_slots(1)) _exit(8);
      request.slot = client.take_slot();
      request.slot_length = 512;
      std::memset(client.slot_data(0, request.slot), static_cast<int>(round / 3 % 251), 512);
      client.post(request);
    }
    leave(client);
  };
  const auto takes_all = [](ipc::Client& client) {
    for (std::uint32_t round = 0; round < rounds; ++round) {
      const ipc::Event* event = nullptr;
      while ((event = client.poll()) == nullptr) continue;
      if (event->slot_length != 512) _exit(9);
      if (client.payload_of(*event)[511] != static_cast<std::byte>(round % 251)) _exit(10);
      client.pop();
    }
    leave(client);
  };
  const auto takes_later = [&takes_all](ipc::Client& client) {
    client.charge(1'000'000'000);
    takes_all(client);
  };
  const auto leaves = [](ipc::Client& client) { leave(client); };
  const Ran ran = run_ranks(test::round_ideal(), {sender, takes_all, leaves, takes_later});
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
  EXPECT_EQ(ran.report.messages, 3 * rounds);
}

}  // namespace
}  // namespace apenet::test
