// The process manager's side of PMI-1.
#include "runtime/launch/pmi_server.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include "kernel/random.hpp"

namespace apenet {
namespace {

class PmiServerTest : public testing::Test {
 protected:
  PmiServerTest() {
    for (auto& pair : pairs_) EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), 0);
    server_ = std::make_unique<PmiServer>(std::vector<int>{pairs_[0][0], pairs_[1][0]});
  }
  ~PmiServerTest() override {
    for (auto& pair : pairs_) close(pair[1]);
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

  std::array<std::array<int, 2>, 2> pairs_{};
  std::unique_ptr<PmiServer> server_;
};

TEST_F(PmiServerTest, ValuesPutByOneRankAreGotByAnother) {
  EXPECT_EQ(ask(0, "cmd=init pmi_version=1 pmi_subversion=1\n"),
            "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
  EXPECT_EQ(ask(0, "cmd=put kvsname=apenet key=k value=v=1\n"), "cmd=put_result rc=0 msg=success\n");
  EXPECT_EQ(ask(1, "cmd=get kvsname=apenet key=k\n"), "cmd=get_result rc=0 msg=success value=v=1\n");
  EXPECT_NE(ask(1, "cmd=get kvsname=apenet key=unknown\n").find("rc=-1"), std::string::npos);
}

TEST_F(PmiServerTest, TheBarrierOpensWhenAllAreIn) {
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
  ASSERT_TRUE(server_->abort().has_value());
  EXPECT_EQ(server_->abort()->rank, 1U);
  EXPECT_EQ(server_->abort()->exit_code, 5);
}

TEST_F(PmiServerTest, AClosedSocketIsTheEndOfARank) {
  shutdown(pairs_[0][1], SHUT_RDWR);
  EXPECT_FALSE(server_->serve(0));
}

// Whatever a broken client sends, the server answers or waits for more.
TEST_F(PmiServerTest, RandomBytesAreSurvived) {
  const std::string alphabet = "cmd=put get init mcmd=spawn endcmd key=\n\n value\xff \0=";
  RandomStream random(1, 1);
  for (std::uint64_t round = 0; round < 2000; ++round) {
    std::string line;
    for (int i = 0; i < 40; ++i) line += alphabet[random.below(alphabet.size())];
    ask(static_cast<std::uint32_t>(round % 2), line);
    answer(0);
    answer(1);
  }
}

}  // namespace
}  // namespace apenet
