// The order in which ranks' output is passed on.
#include "runtime/launch/output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace apenet {
namespace {

class OutputTest : public testing::Test {
 protected:
  OutputTest() {
    for (auto& rank : pipes_) {
      for (auto& stream : rank) EXPECT_EQ(pipe(stream.data()), 0);
    }
    EXPECT_EQ(pipe(sink_.data()), 0);
    fcntl(sink_[0], F_SETFL, O_NONBLOCK);
    output_ = std::make_unique<Output>(std::vector<std::array<int, 2>>{{pipes_[0][0][0], pipes_[0][1][0]},
                                                                       {pipes_[1][0][0], pipes_[1][1][0]}},
                                       std::array<int, 2>{sink_[1], sink_[1]});
  }
  ~OutputTest() override {
    for (auto& rank : pipes_) {
      for (auto& stream : rank) close(stream[1]);
    }
    close(sink_[0]);
    close(sink_[1]);
  }
  void say(std::uint32_t rank, const std::string& text) {
    EXPECT_EQ(write(pipes_[rank][0][1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    EXPECT_TRUE(output_->read(rank, 0));
  }
  std::string passed_on() {
    char buffer[256];
    const ssize_t count = read(sink_[0], buffer, sizeof buffer);
    return count > 0 ? std::string(buffer, static_cast<std::size_t>(count)) : std::string{};
  }

  std::array<std::array<std::array<int, 2>, 2>, 2> pipes_{};
  std::array<int, 2> sink_{};
  std::unique_ptr<Output> output_;
};

TEST_F(OutputTest, OnlyWholeLinesArePassedOnWhileARankLives) {
  say(0, "one\ntw");
  output_->pass_lines(0);
  EXPECT_EQ(passed_on(), "one\n");
  say(0, "o\n");
  output_->pass_lines(0);
  EXPECT_EQ(passed_on(), "two\n");
}

TEST_F(OutputTest, WhatComesAfterTheEndComesInRankOrder) {
  say(1, "second");
  output_->end(1);
  output_->pass_in_turn();
  EXPECT_EQ(passed_on(), "");
  say(0, "first\nand ");
  output_->pass_in_turn();
  EXPECT_EQ(passed_on(), "first\n");
  output_->end(0);
  output_->pass_in_turn();
  EXPECT_EQ(passed_on(), "and second");
}

}  // namespace
}  // namespace apenet
