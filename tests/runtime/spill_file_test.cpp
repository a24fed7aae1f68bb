// Bytes that the simulator keeps in a file.
#include "runtime/scheduler/spill_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <vector>

namespace apenet {
namespace {

std::vector<std::byte> filled(std::size_t bytes, int with) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(with));
}

TEST(SpillFile, GivesBackWhatItKeeps) {
  SpillFile file;
  const auto first = file.keep(filled(100'000, 1));
  const auto second = file.keep(filled(10, 2));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*second, *first + 100'000);
  std::vector<std::byte> read(10);
  ASSERT_TRUE(file.read(*second, read));
  EXPECT_EQ(read, filled(10, 2));
  ASSERT_TRUE(file.read(*first + 99'990, read));
  EXPECT_EQ(read, filled(10, 1));
}

// Its length is that of the bytes that are needed at once, not of all that were ever kept.
TEST(SpillFile, BeginsAnewWhenAllIsReleased) {
  SpillFile file;
  const auto first = file.keep(filled(1000, 1));
  const auto second = file.keep(filled(1000, 2));
  ASSERT_TRUE(first && second);
  file.release(1000);
  EXPECT_GT(file.keep(filled(1, 3)), second);
  file.release(1001);
  EXPECT_EQ(file.keep(filled(1, 4)), first);
  std::vector<std::byte> read(2);
  EXPECT_FALSE(file.read(*first, read));  // only one byte is there
}

TEST(SpillFile, SaysThatThereIsNoRoom) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit little{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  SpillFile file;
  EXPECT_TRUE(file.keep(filled(4096, 1)));
  EXPECT_FALSE(file.keep(filled(1, 1)));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
}

TEST(SpillFile, NeedsAFolder) {
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before != nullptr ? before : "";
  setenv("TMPDIR", "/nowhere", 1);
  SpillFile file;
  EXPECT_FALSE(file.keep(filled(1, 1)));
  if (before != nullptr) {
    setenv("TMPDIR", kept.c_str(), 1);
  } else {
    unsetenv("TMPDIR");
  }
}

}  // namespace
}  // namespace apenet
