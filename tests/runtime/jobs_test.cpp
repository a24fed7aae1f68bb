// Several jobs in one session: each is what it is alone, unless they share links.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <ctime>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ranks.hpp"
#include "runtime/session.hpp"
#include "support/machines.hpp"

namespace apenet::test {
namespace {

constexpr std::int64_t ps_per_us = 1'000'000;

struct TestJob {
  std::vector<NodeId> nodes;
  std::vector<RankProgram> programs;
  std::int64_t start_ps = 0;
  Begin begin = Begin::at_the_barrier;
};

std::vector<SessionReport> run_together(const std::vector<TestJob>& jobs) {
  static const int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
  std::vector<SessionJob> described;
  for (const TestJob& job : jobs) {
    SessionOptions options;
    options.output_fd = options.error_fd = sink;
    options.deadlock_wait_ms = 100;
    options.start_ps = job.start_ps;
    described.push_back({job.nodes, options});
  }
  Session session(test::machine("ape128"), described);
  std::vector<StartedJob> started(jobs.size());
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    for (std::uint32_t rank = 0; rank < jobs[job].programs.size(); ++rank)
      started[job].ranks.push_back(fork_rank(session, rank, jobs[job].programs[rank], jobs[job].begin, job));
  }
  return session.run(started, [] { return false; });
}

// Each rank sends to the next ones in turn, and computes.
std::vector<RankProgram> talk(std::uint32_t ranks, std::uint32_t rounds) {
  std::vector<RankProgram> programs;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    programs.emplace_back([=](ipc::Client& client) {
      for (std::uint32_t round = 0; round < rounds; ++round) {
        client.charge(1000 * ((rank * 7 + round) % 5));
        send_word(client, (rank + 1 + round % (ranks - 1)) % ranks, round);
        receive_word(client);
      }
      leave(client);
    });
  }
  return programs;
}

const std::vector<NodeId> first_row = {0, 1, 2, 3};
const std::vector<NodeId> third_row = {16, 17, 18, 19};

TestJob left() {
  return {first_row, talk(4, 200)};
}

TestJob right() {
  return {third_row, talk(4, 90)};
}

void expect_same(const SessionReport& report, const SessionReport& alone) {
  ASSERT_EQ(report.outcome, SessionReport::Outcome::completed) << report.message;
  EXPECT_EQ(report.virtual_ps, alone.virtual_ps);
  EXPECT_EQ(report.trace_hash, alone.trace_hash);
  EXPECT_EQ(report.messages, alone.messages);
  EXPECT_EQ(report.bytes, alone.bytes);
  ASSERT_EQ(report.ranks.size(), alone.ranks.size());
  for (std::size_t rank = 0; rank < alone.ranks.size(); ++rank) {
    EXPECT_EQ(report.ranks[rank].virtual_us, alone.ranks[rank].virtual_us);
    EXPECT_EQ(report.ranks[rank].waited_us, alone.ranks[rank].waited_us);
  }
}

TEST(Jobs, OnLinksOfTheirOwnTakeTheTimeThatTheyTakeAlone) {
  const SessionReport left_alone = run_together({left()}).front();
  const SessionReport right_alone = run_together({right()}).front();
  ASSERT_NE(left_alone.virtual_ps, right_alone.virtual_ps);
  const std::vector<SessionReport> reports = run_together({left(), right()});
  expect_same(reports[0], left_alone);
  expect_same(reports[1], right_alone);
  const std::vector<SessionReport> turned = run_together({right(), left()});
  expect_same(turned[0], right_alone);
  expect_same(turned[1], left_alone);
}

TEST(Jobs, ALaterStartChangesNothingForAJobOnLinksOfItsOwn) {
  const SessionReport left_alone = run_together({left()}).front();
  const SessionReport right_alone = run_together({right()}).front();
  TestJob late = right();
  late.start_ps = 37 * ps_per_us;
  const std::vector<SessionReport> reports = run_together({left(), late});
  expect_same(reports[0], left_alone);
  expect_same(reports[1], right_alone);
}

// Ranks that join without MPI, whose clocks would begin with each of them.
TEST(Jobs, ThatJoinWithoutMpiBeginTogether) {
  const auto joining = [](const TestJob& job) {
    TestJob joins = job;
    joins.begin = Begin::by_the_program;
    for (RankProgram& program : joins.programs) {
      program = [inner = program](ipc::Client& client) {
        client.lock();  // as the libraries do
        client.join();
        client.unlock();
        inner(client);
      };
    }
    return joins;
  };
  const SessionReport alone = run_together({joining(left())}).front();
  TestJob late = joining(left());
  late.start_ps = 5 * ps_per_us;
  const std::vector<SessionReport> reports = run_together({right(), late});
  expect_same(reports[1], alone);
}

// Two ranks, which send messages of so many bytes there and back.
TestJob ping(std::vector<NodeId> nodes, int rounds, std::uint64_t bytes) {
  const auto post = [bytes](ipc::Client& client, std::uint32_t target) {
    ipc::Request request;
    request.target = target;
    request.bytes = bytes;
    client.post(request);
  };
  const RankProgram sends = [=](ipc::Client& client) {
    for (int i = 0; i < rounds; ++i) {
      post(client, 1);
      await(client, ipc::EventKind::arrived);
    }
    leave(client);
  };
  const RankProgram receives = [=](ipc::Client& client) {
    for (int i = 0; i < rounds; ++i) {
      await(client, ipc::EventKind::arrived);
      post(client, 0);
    }
    leave(client);
  };
  return {std::move(nodes), {sends, receives}};
}

// Messages between nodes 0 and 3 take the link between nodes 1 and 2.
TEST(Jobs, OnSharedLinksDelayEachOtherInTheSameWayInEachRun) {
  const auto far = [] { return ping({0, 3}, 20, 1024); };
  const auto near = [] { return ping({1, 2}, 20, 1024); };
  const SessionReport alone = run_together({far()}).front();
  const SessionReport other_alone = run_together({near()}).front();
  const std::vector<SessionReport> once = run_together({far(), near()});
  const std::vector<SessionReport> again = run_together({far(), near()});
  EXPECT_GT(once[0].virtual_ps + once[1].virtual_ps, alone.virtual_ps + other_alone.virtual_ps);
  expect_same(again[0], once[0]);
  expect_same(again[1], once[1]);
}

TEST(Jobs, AJobThatFailsEndsAlone) {
  const SessionReport alone = run_together({left()}).front();
  TestJob dies = right();
  dies.programs[2] = [](ipc::Client& client) {
    client.charge(3 * ps_per_us);
    client.settle();
    _exit(3);
  };
  const std::vector<SessionReport> reports = run_together({dies, left()});
  EXPECT_EQ(reports[0].outcome, SessionReport::Outcome::failed);
  EXPECT_EQ(reports[0].exit_status, 3);
  EXPECT_EQ(reports[0].message.rfind("rank 2 exited with status 3", 0), 0U) << reports[0].message;
  expect_same(reports[1], alone);
}

TEST(Jobs, AJobThatDeadlocksEndsAlone) {
  const SessionReport alone = run_together({left()}).front();
  TestJob waits = right();
  for (RankProgram& program : waits.programs) {
    program = [](ipc::Client& client) {
      client.charge(2 * ps_per_us);
      receive_word(client);
    };
  }
  const std::vector<SessionReport> reports = run_together({left(), waits});
  expect_same(reports[0], alone);
  EXPECT_EQ(reports[1].outcome, SessionReport::Outcome::deadlock) << reports[1].message;
}

// Its requests are refused while the model runs for both.
TEST(Jobs, AJobThatWritesInvalidDataEndsAlone) {
  const SessionReport alone = run_together({left()}).front();
  TestJob lies = right();
  lies.programs[1] = [](ipc::Client& client) { send_word(client, 99, 1); };
  const std::vector<SessionReport> reports = run_together({left(), lies});
  expect_same(reports[0], alone);
  EXPECT_EQ(reports[1].outcome, SessionReport::Outcome::failed);
  EXPECT_NE(reports[1].message.find("rank 1 "), std::string::npos) << reports[1].message;
}

// An open machine: the second job joins when the first has run for a while, or at a time that is known.
std::vector<SessionReport> run_open(const std::vector<TestJob>& jobs, bool start_then,
                                    std::vector<std::int64_t>& began_ps) {
  static const int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
  Session session(test::machine("ape128"), OpenMachine{});
  std::vector<std::size_t> ended;
  const auto serve = [&](const std::function<bool()>& is_to_return) {
    for (const std::size_t job : session.serve([] { return false; }, is_to_return)) ended.push_back(job);
  };
  const auto start = [&](const TestJob& job) {
    SessionOptions options;
    options.output_fd = options.error_fd = sink;
    options.start_ps = job.start_ps;
    const std::size_t number = session.add({job.nodes, options}, start_then);
    StartedJob started;
    for (std::uint32_t rank = 0; rank < job.programs.size(); ++rank)
      started.ranks.push_back(fork_rank(session, rank, job.programs[rank], job.begin, number));
    session.start(number, started);
    return number;
  };
  for (const TestJob& job : jobs) {
    const std::size_t number = start(job);
    if (!start_then) serve([&] { return session.began_ps(number).has_value(); });
  }
  while (ended.size() < jobs.size()) serve([] { return false; });
  std::vector<SessionReport> reports;
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    began_ps.push_back(session.began_ps(job).value_or(-1));
    reports.push_back(session.report(job));
  }
  return reports;
}

TEST(Jobs, OfAnOpenMachineAreRepeatedByTheTimesAtWhichTheyBegan) {
  // The second one uses the links of the first, the third one its nodes.
  std::vector<TestJob> jobs = {
      {{0, 2, 4, 6}, talk(4, 3000)}, {{1, 3, 5, 7}, talk(4, 300)}, {{8, 9}, talk(2, 9)}};
  std::vector<std::int64_t> began_ps;
  const std::vector<SessionReport> live = run_open(jobs, false, began_ps);
  EXPECT_EQ(began_ps[0], 0);
  EXPECT_GT(began_ps[1], 0);
  EXPECT_GT(began_ps[2], began_ps[1]);
  for (std::size_t job = 0; job < jobs.size(); ++job) jobs[job].start_ps = began_ps[job];
  std::vector<std::int64_t> again_ps;
  const std::vector<SessionReport> again = run_open(jobs, true, again_ps);
  EXPECT_EQ(again_ps, began_ps);
  for (std::size_t job = 0; job < jobs.size(); ++job) expect_same(again[job], live[job]);
}

// The clock of a rank has no time left. Those of the others have, and so have those of jobs that join later.
TEST(Jobs, OfAnOpenMachineGoOnWhenOneHasComeToTheEndOfTime) {
  TestJob late = right();
  late.programs[1] = [](ipc::Client& client) {
    client.charge(ipc::end_of_time_ps - 1);
    client.charge(ipc::end_of_time_ps / 2);
    receive_word(client);
  };
  std::vector<std::int64_t> began_ps;
  const std::vector<SessionReport> reports = run_open({late, left(), right()}, false, began_ps);
  EXPECT_EQ(reports[0].outcome, SessionReport::Outcome::failed);
  EXPECT_EQ(reports[1].outcome, SessionReport::Outcome::completed) << reports[1].message;
  EXPECT_EQ(reports[2].outcome, SessionReport::Outcome::completed) << reports[2].message;
}

// For longer than a cancelled job has for what it does in the host.
TEST(Jobs, OfAnOpenMachineAreCancelledInVirtualTimeWhileAnotherOneComputes) {
  static const int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
  Session session(test::machine("ape128"), OpenMachine{});
  int begun[2];
  ASSERT_EQ(pipe2(begun, O_CLOEXEC | O_NONBLOCK), 0);
  TestJob computes = {{0}, {[&](ipc::Client& client) {
                        client.charge(1000);
                        client.settle();
                        if (write(begun[1], "x", 1) != 1) _exit(1);
                        timespec now{};
                        timespec first{};
                        clock_gettime(CLOCK_MONOTONIC, &first);
                        do clock_gettime(CLOCK_MONOTONIC, &now);
                        while (now.tv_sec < first.tv_sec + 4);
                        leave(client);
                      }}};
  // To the limit, which its last rank has reached at once, the others have yet to come.
  TestJob cancelled = ping({1, 2, 3}, 1 << 30, 8);
  cancelled.programs.emplace_back([](ipc::Client& client) {
    client.charge(60'000 * ps_per_us);
    receive_word(client);
  });
  std::vector<std::size_t> ended;
  const auto start = [&](const TestJob& job) {
    SessionOptions options;
    options.output_fd = options.error_fd = sink;
    const std::size_t number = session.add({job.nodes, options}, false);
    StartedJob started;
    for (std::uint32_t rank = 0; rank < job.programs.size(); ++rank)
      started.ranks.push_back(fork_rank(session, rank, job.programs[rank], job.begin, number));
    session.start(number, started);
    return number;
  };
  const std::size_t number = start(cancelled);
  EXPECT_TRUE(
      session.serve([] { return false; }, [&] { return session.began_ps(number).has_value(); }).empty());
  start(computes);
  const auto computes_now = [&] {
    char word = 0;
    return read(begun[0], &word, 1) == 1;
  };
  EXPECT_TRUE(session.serve([] { return false; }, computes_now).empty());
  session.cancel(number);
  while (ended.size() < 2) {
    for (const std::size_t job : session.serve([] { return false; }, [] { return false; }))
      ended.push_back(job);
  }
  EXPECT_EQ(session.report(number).outcome, SessionReport::Outcome::limit);
  close(begun[0]);
  close(begun[1]);
}

TEST(Jobs, OfAnOpenMachineFailWithoutPlacesOnANode) {
  Session session(test::machine("ape128"), OpenMachine{});
  EXPECT_THROW(Session(test::machine("ape128"), OpenMachine{5}), std::invalid_argument);
  EXPECT_THROW(Session(test::machine("ideal"), OpenMachine{}), std::invalid_argument);
  std::vector<std::int64_t> began_ps;
  const TestJob crowded = {{3, 3}, talk(2, 9)};
  const SessionReport report = run_open({crowded}, true, began_ps).front();
  EXPECT_EQ(report.outcome, SessionReport::Outcome::failed);
  EXPECT_NE(report.message.find("processes on node 3"), std::string::npos) << report.message;
}

}  // namespace
}  // namespace apenet::test
