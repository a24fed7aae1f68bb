// The process manager's side of PMI-1.
#include "runtime/launch/pmi_server.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "kernel/random.hpp"
#include "runtime/scheduler/rank_error.hpp"

namespace apenet {
namespace {

class PmiServerTest : public testing::Test {
 protected:
  PmiServerTest() { connect(); }
  ~PmiServerTest() override { disconnect(); }
  void connect(PmiServer::FindLauncher find_launcher = {}, std::size_t ranks = 2) {
    disconnect();
    std::vector<int> fds;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs_.emplace_back().data()), 0);
      fds.push_back(pairs_.back()[0]);
    }
    server_ = std::make_unique<PmiServer>(std::move(fds), std::move(find_launcher));
  }
  void disconnect() {
    for (auto& pair : pairs_) close(pair[1]);
    pairs_.clear();
    server_.reset();
  }
  std::string ask(std::uint32_t rank, const std::string& line) {
    EXPECT_EQ(write(pairs_[rank][1], line.data(), line.size()), static_cast<ssize_t>(line.size()));
    EXPECT_TRUE(server_->serve(rank));
    return answer(rank);
  }
  std::string answer(std::uint32_t rank) {
    char buffer[4096];
    const ssize_t count = recv(pairs_[rank][1], buffer, sizeof buffer, MSG_DONTWAIT);
    return count > 0 ? std::string(buffer, static_cast<std::size_t>(count)) : std::string{};
  }

  std::vector<std::array<int, 2>> pairs_;
  std::unique_ptr<PmiServer> server_;
};

TEST_F(PmiServerTest, OneRankReadsTheValuesOfAnother) {
  EXPECT_EQ(ask(0, "cmd=init pmi_version=1 pmi_subversion=1\n"),
            "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
  EXPECT_EQ(ask(0, "cmd=put kvsname=apenet key=k value=v=1\n"), "cmd=put_result rc=0 msg=success\n");
  EXPECT_EQ(ask(1, "cmd=get kvsname=apenet key=k\n"), "cmd=get_result rc=0 msg=success value=v=1\n");
  EXPECT_NE(ask(1, "cmd=get kvsname=apenet key=unknown\n").find("rc=-1"), std::string::npos);
}

// Each kind would wait for the ranks of the other one.
TEST_F(PmiServerTest, RanksOfTwoMpiLibrariesAreRefusedInAnyOrder) {
  const std::string init = "cmd=init pmi_version=1 pmi_subversion=1\n";
  const std::string mpich = "cmd=apenet_library library=MPICH Version: 5.0.0\n";
  const std::string intel = "cmd=apenet_library library=Intel(R) MPI Library 2021.17 for Linux* OS\n";
  const std::string launcher = "cmd=apenet_launcher library=/lib/libmpi.so.40\n";
  const auto find_launcher = [](std::uint32_t, const std::string&) { return "path=/variables"; };
  const std::string answer = "cmd=apenet_library_result\n";
  struct Library {
    std::string line;
    std::string name;
  };
  const std::vector<Library> libraries{{mpich, "MPICH Version: 5.0.0"},
                                       {intel, "Intel(R) MPI Library 2021.17 for Linux* OS"},
                                       {launcher, "Open MPI (/lib/libmpi.so.40)"}};
  for (const Library& first : libraries) {
    for (const Library& second : libraries) {
      if (first.line == second.line) continue;
      for (const std::uint32_t earlier : {0U, 1U}) {
        connect(find_launcher);
        const std::array lines{first.line, second.line};
        EXPECT_NE(ask(earlier, lines[earlier]), "");
        EXPECT_EQ(ask(1 - earlier, lines[1 - earlier]), "");
        EXPECT_TRUE(server_->waits_for_others(1 - earlier));
        EXPECT_EQ(server_->refusal(0), "");
        EXPECT_EQ(server_->refusal(1), "it has " + second.name + ", but rank 0 has " + first.name +
                                           ": expected one MPI library in all ranks");
      }
    }
  }
  // Two versions of a library may meet.
  connect(find_launcher);
  EXPECT_EQ(ask(0, intel), answer);
  EXPECT_EQ(ask(1, "cmd=apenet_library library=Intel(R) MPI Library 2019\n"), answer);
  EXPECT_EQ(server_->refusal(1), "");
  // One after the other they may.
  connect(find_launcher);
  for (const std::uint32_t rank : {0U, 1U}) ask(rank, init);
  for (const std::uint32_t rank : {0U, 1U}) ask(rank, "cmd=finalize\n");
  EXPECT_EQ(ask(0, launcher), "cmd=apenet_launcher_result path=/variables\n");
}

TEST_F(PmiServerTest, RanksOfTwoMpiLibrariesWaitForAllOthers) {
  const std::string mpich = "cmd=apenet_library library=MPICH Version: 5.0.0\n";
  const std::string launcher = "cmd=apenet_launcher library=/lib/libmpi.so.40\n";
  const auto find_launcher = [](std::uint32_t, const std::string&) { return "path=/variables"; };
  // The third rank decides which one is named.
  connect(find_launcher, 3);
  EXPECT_NE(ask(1, mpich), "");
  EXPECT_EQ(ask(2, launcher), "");
  EXPECT_EQ(server_->refusal(2), "");
  EXPECT_EQ(ask(0, launcher), "");
  EXPECT_EQ(server_->refusal(2), "");
  EXPECT_EQ(server_->refusal(1),
            "it has MPICH Version: 5.0.0, but rank 0 has Open MPI (/lib/libmpi.so.40): "
            "expected one MPI library in all ranks");
  // It may end before that, or never say.
  for (const bool ends : {false, true}) {
    connect(find_launcher, 3);
    EXPECT_FALSE(server_->refuse_two_libraries());
    EXPECT_NE(ask(1, mpich), "");
    EXPECT_EQ(ask(2, launcher), "");
    if (ends) {
      server_->note_end(0);
    } else {
      EXPECT_TRUE(server_->refuse_two_libraries());
    }
    EXPECT_NE(server_->refusal(2), "");
  }
  // The first library may leave before another rank has told its own.
  connect(find_launcher, 3);
  ask(1, mpich);
  EXPECT_EQ(ask(2, launcher), "");
  ask(1, "cmd=finalize\n");
  EXPECT_FALSE(server_->waits_for_others(2));
  EXPECT_EQ(server_->refusal(2), "");
}

TEST_F(PmiServerTest, EachRankIsOnANodeOfItsOwn) {
  EXPECT_EQ(ask(1, "cmd=get kvsname=apenet key=PMI_process_mapping\n"),
            "cmd=get_result rc=0 msg=success value=(vector,(0,2,1))\n");
}

// MPICH's ranks read the values of all ranks in sequence.
TEST_F(PmiServerTest, ARowOfValuesIsSentAhead) {
  const auto key = [](int number) { return " key=-allgather-1-" + std::to_string(number); };
  const auto value = [](int number) {
    return "cmd=get_result rc=0 msg=success value=v" + std::to_string(number) + "\n";
  };
  std::string space = ask(0, "cmd=get_my_kvsname\n");
  space = space.substr(space.find("kvsname="), space.find(" rc=") - space.find("kvsname="));
  for (int number = 0; number < 5; ++number)
    ask(0, "cmd=put " + space + key(number) + " value=v" + std::to_string(number) + "\n");
  const auto get = [&](int number) { return "cmd=get " + space + key(number) + "\n"; };
  EXPECT_EQ(ask(1, get(0)), value(0));
  EXPECT_EQ(ask(1, get(1)), value(1) + value(2) + value(3) + value(4));
  EXPECT_EQ(ask(1, get(2)), "");
  EXPECT_EQ(ask(1, get(3) + get(4)), "");
  EXPECT_NE(ask(1, get(5)).find("rc=-1"), std::string::npos);
  // Another rank reads them in another order, one by one.
  EXPECT_EQ(ask(0, get(3)), value(3));
  EXPECT_EQ(ask(0, get(1)), value(1));
  EXPECT_EQ(ask(0, get(2)), value(2) + value(3) + value(4));
  ask(0, "cmd=abort exitcode=3\n");
  EXPECT_EQ(server_->aborts().size(), 1U);
  EXPECT_THROW(ask(0, get(4)), RankError);
}

TEST_F(PmiServerTest, TheBarrierOpensWhenAllRanksHaveEntered) {
  EXPECT_EQ(ask(0, "cmd=barrier_in\n"), "");
  EXPECT_EQ(ask(1, "cmd=barrier_in\n"), "cmd=barrier_out rc=0\n");
  EXPECT_EQ(answer(0), "cmd=barrier_out rc=0\n");
}

TEST_F(PmiServerTest, LinesMayComeInPieces) {
  EXPECT_EQ(ask(0, "cmd=get_un"), "");
  EXPECT_EQ(ask(0, "iverse_size\n"), "cmd=universe_size size=2 rc=0\n");
}

TEST_F(PmiServerTest, SpawningIsRefused) {
  EXPECT_EQ(ask(0, "mcmd=spawn\nnprocs=1\nexecname=x\n"), "");
  EXPECT_NE(ask(0, "endcmd\n").find("cmd=spawn_result rc=-1"), std::string::npos);
  EXPECT_TRUE(server_->spawn_refused());
}

TEST_F(PmiServerTest, AbortIsNoted) {
  ask(1, "cmd=abort exitcode=5\n");
  ASSERT_EQ(server_->aborts().size(), 1U);
  EXPECT_EQ(server_->aborts()[0].rank, 1U);
  EXPECT_EQ(server_->aborts()[0].exit_code, 5);
  EXPECT_THROW(ask(0, "cmd=abort exitcode=5x\n"), RankError);
  EXPECT_THROW(ask(1, "cmd=abort\n"), RankError);
  EXPECT_EQ(server_->aborts().size(), 1U);
}

TEST_F(PmiServerTest, AClosedSocketIsTheEndOfARank) {
  shutdown(pairs_[0][1], SHUT_RDWR);
  EXPECT_FALSE(server_->serve(0));
}

TEST_F(PmiServerTest, ARankWithoutASocketIsNotServed) {
  PmiServer server({-1, -1});
  EXPECT_FALSE(server.serve(0));
}

TEST_F(PmiServerTest, ASpawnAffectsOnlyItsRank) {
  EXPECT_EQ(ask(0, "mcmd=spawn\nnprocs=1\n"), "");
  EXPECT_EQ(ask(1, "cmd=get_universe_size\n"), "cmd=universe_size size=2 rc=0\n");
  EXPECT_NE(ask(0, "endcmd\n").find("cmd=spawn_result rc=-1"), std::string::npos);
}

// A protocol violation ends the connection with that rank, and the error names it.
TEST_F(PmiServerTest, ABrokenClientIsNamed) {
  const auto broken = [this](std::uint32_t rank, const std::string& line) -> std::string {
    try {
      ask(rank, line);
    } catch (const RankError& error) {
      EXPECT_EQ(error.rank(), rank);
      EXPECT_FALSE(server_->serve(rank));
      return error.what();
    }
    return {};
  };
  ask(1, "cmd=barrier_in\n");
  EXPECT_EQ(broken(1, "cmd=barrier_in\n"), "rank 1 entered the process manager's barrier twice");
  EXPECT_EQ(broken(0, "nothing\n"),
            "rank 0 sent the process manager the line \"nothing\": expected cmd=NAME");
}

TEST_F(PmiServerTest, LinesKeysAndValuesAreBounded) {
  const std::string part(4000, 'x');
  std::string what;
  for (int i = 0; i < 20 && what.empty(); ++i) {
    try {
      ask(0, part);
    } catch (const RankError& error) {
      what = error.what();
    }
  }
  EXPECT_EQ(what, "rank 0 sent the process manager a line of more than 65536 bytes, \"" +
                      std::string(80, 'x') + "...\"");
  EXPECT_THROW(ask(1, "cmd=put key=" + std::string(65, 'k') + " value=v\n"), RankError);
}

TEST_F(PmiServerTest, ARankThatReadsNoAnswersDoesNotBlockTheServer) {
  EXPECT_THROW(
      {
        for (int i = 0; i < 100'000; ++i) {
          const std::string line = "cmd=get_maxes\ncmd=get_maxes\n";
          ASSERT_EQ(write(pairs_[0][1], line.data(), line.size()), static_cast<ssize_t>(line.size()));
          server_->serve(0);
        }
      },
      RankError);
}

// Whatever a broken client sends, the server answers, waits for more, or throws an error that names the rank.
TEST_F(PmiServerTest, RandomBytesAreSurvived) {
  const std::string alphabet = "cmd=put get init mcmd=spawn endcmd key=\n\n value\xff \0=";
  RandomStream random(1, 1);
  for (std::uint64_t round = 0; round < 2000; ++round) {
    if (server_->fd(0) < 0 || server_->fd(1) < 0) connect();
    std::string line;
    for (int i = 0; i < 40; ++i) line += alphabet[random.below(alphabet.size())];
    const auto rank = static_cast<std::uint32_t>(round % 2);
    try {
      ask(rank, line);
    } catch (const RankError& error) {
      EXPECT_EQ(error.rank(), rank);
    }
    answer(0);
    answer(1);
  }
}

}  // namespace
}  // namespace apenet
