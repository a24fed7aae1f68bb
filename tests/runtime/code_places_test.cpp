#include "runtime/launch/code_places.hpp"

#include <execinfo.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>

namespace apenet {
namespace {

[[gnu::noinline]] std::uint64_t caller() {
  return reinterpret_cast<std::uint64_t>(__builtin_return_address(0));
}

// Where this function calls backtrace(), of another library.
[[gnu::noinline]] std::uint64_t caller_of_library() {
  void* frame = nullptr;
  return backtrace(&frame, 1) == 1 ? reinterpret_cast<std::uint64_t>(frame) : 0;
}

TEST(CodePlaces, TellsACallOfTheOwnFileFromOneThatMayLeaveIt) {
  CodePlaces places(getpid());
  const std::uint64_t direct = caller();
  EXPECT_NE(places.function_of(direct).find("TellsACall"), std::string::npos);
  EXPECT_FALSE(places.may_leave_file(direct));
  EXPECT_TRUE(places.may_leave_file(caller_of_library()));
  std::uint64_t (*volatile pointer)() = caller;
  EXPECT_TRUE(places.may_leave_file(pointer()));
}

}  // namespace
}  // namespace apenet
