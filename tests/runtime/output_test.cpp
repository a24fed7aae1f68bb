// The order in which the ranks' output is forwarded.
#include "runtime/launch/output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
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
    EXPECT_GE(fcntl(sink_[1], F_SETPIPE_SZ, 1 << 20), 1 << 20);  // takes what one call passes on
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
  void say(std::uint32_t rank, std::int64_t time_ps, const std::string& text, int stream = 0) {
    EXPECT_EQ(write(pipes_[rank][static_cast<std::size_t>(stream)][1], text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
    output_->read(rank, stream, time_ps);
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

TEST_F(OutputTest, OnlyCompleteLinesAreForwardedWhileARankRuns) {
  say(0, 0, "one\ntw");
  output_->pass({0, 0});
  EXPECT_EQ(passed_on(), "one\n");
  say(0, 0, "o\n");
  output_->pass({0, 0});
  EXPECT_EQ(passed_on(), "two\n");
}

TEST_F(OutputTest, LinesComeInTheOrderOfTimeThenRank) {
  say(1, -1, "before\n");
  say(1, 20, "late\n");
  say(0, 10, "first\n");
  say(0, 20, "late, too\n");
  output_->pass({-1, 0});
  EXPECT_EQ(passed_on(), "");
  output_->pass({15, 0});
  EXPECT_EQ(passed_on(), "before\nfirst\n");
  output_->pass({20, 1});
  EXPECT_EQ(passed_on(), "late, too\nlate\n");
}

TEST_F(OutputTest, ALineBelongsToTheTimeAtWhichItEnds) {
  say(0, 10, "half ");
  say(1, 20, "whole\n");
  say(0, 30, "a line\n");
  output_->pass({40, 0});
  EXPECT_EQ(passed_on(), "whole\nhalf a line\n");
}

TEST_F(OutputTest, TheLastLineNeedsNoNewline) {
  say(1, 10, "second");
  output_->end(1, 10);
  say(0, 10, "first\nand ");
  output_->pass({10, 0});
  EXPECT_EQ(passed_on(), "first\n");
  output_->end(0, 10);
  output_->pass({30, 0});
  EXPECT_EQ(passed_on(), "and second");
}

// Independent of whether the pipes are read between the two writes or after them.
TEST_F(OutputTest, InOneFileStandardOutputComesFirst) {
  say(0, 10, "error\n", 1);
  output_->pass({10, 0});
  say(0, 10, "output\n");
  output_->pass({10, 1});
  EXPECT_EQ(passed_on(), "output\nerror\n");
}

TEST_F(OutputTest, EveryLineStartsWithItsRankIfTagged) {
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe(pipe_ends.data()), 0);
  Output tagged({{-1, -1}, {pipe_ends[0], -1}}, {sink_[1], sink_[1]}, true);
  const std::string text = "one\n\nthree";
  ASSERT_EQ(write(pipe_ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  tagged.end(1, 10);
  tagged.pass_all();
  EXPECT_EQ(passed_on(), "[1] one\n[1] \n[1] three");
  close(pipe_ends[1]);
}

// A rank that prints for ever without a line end does not fill the simulator's memory.
TEST_F(OutputTest, OfALineWithoutAnEndOneMebibyteIsHeld) {
  const std::string part(32768, 'x');
  std::size_t passed = 0;
  for (int i = 0; i < 33; ++i) {
    say(0, 10, part);
    output_->pass({10, 0});
    for (std::string got = passed_on(); !got.empty(); got = passed_on()) passed += got.size();
  }
  EXPECT_EQ(passed, Output::most_unfinished_bytes);
  output_->end(0, 10);
  output_->pass({10, 0});
  for (std::string got = passed_on(); !got.empty(); got = passed_on()) passed += got.size();
  EXPECT_EQ(passed, 33 * part.size());
}

TEST_F(OutputTest, ALongLineIsCutAtTheSamePlaceHoweverThePipeIsRead) {
  std::string text(Output::most_unfinished_bytes + 100, 'x');
  text += "\nnext\n";
  text.resize((text.size() / 16384 + 1) * 16384, 'y');
  std::array<std::string, 2> printed;
  for (const std::size_t step : {std::size_t{4096}, std::size_t{16384}}) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    const int file = memfd_create("printed", 0);
    Output tagged({{ends[0], -1}}, {file, file}, true);
    for (std::size_t done = 0; done < text.size(); done += step) {
      ASSERT_EQ(write(ends[1], text.data() + done, step), static_cast<ssize_t>(step));
      tagged.read(0, 0, 10);
    }
    tagged.end(0, 10);
    tagged.pass_all();
    std::string& got = printed[step == 4096 ? 0 : 1];
    got.resize(2 * text.size());
    got.resize(static_cast<std::size_t>(pread(file, got.data(), got.size(), 0)));
    close(ends[1]);
    close(file);
  }
  EXPECT_TRUE(printed[0] == printed[1]);
  EXPECT_EQ(printed[0].find("\n[0] x"), Output::most_unfinished_bytes + 4);
}

// Lines that wait for other ranks are held in a file from a limit on, and come in the same order.
TEST_F(OutputTest, ManyHeldLinesKeepTheirOrder) {
  const std::string line = std::string(32766, 'z') + "\n";
  const std::size_t count = Output::most_held_bytes / line.size() + 40;
  for (std::size_t i = 0; i < count; ++i) {
    std::string text = line;
    text[0] = static_cast<char>('a' + i % 26);
    say(1, static_cast<std::int64_t>(10 + i / 7), text);
  }
  say(0, 5, "first\n");
  for (std::size_t i = 0; i < count / 7 + 1; ++i) {
    output_->pass({static_cast<std::int64_t>(10 + i), 1});
    std::string got;
    for (std::string part = passed_on(); !part.empty(); part = passed_on()) got += part;
    for (std::size_t k = 0; k < 7 && i * 7 + k < count; ++k) {
      const std::size_t begin = (i == 0 ? 6 : 0) + k * line.size();
      ASSERT_EQ(got.at(begin), static_cast<char>('a' + (i * 7 + k) % 26)) << i << " " << k;
    }
  }
}

TEST_F(OutputTest, OutputAfterTheEndIsNotLost) {
  output_->end(0, 10);
  say(0, 10, "a daemon\n");
  output_->pass_all();
  EXPECT_EQ(passed_on(), "a daemon\n");
}

}  // namespace
}  // namespace apenet
