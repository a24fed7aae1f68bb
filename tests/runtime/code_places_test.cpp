#include "runtime/launch/code_places.hpp"

#include <execinfo.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

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

// What lies above a thread's stack is not the thread's, whether it is of the same mapping or not.
TEST(CodePlaces, ReadsAStackToItsUpperEndOnly) {
  constexpr std::size_t stack_words = std::size_t{1} << 15;
  constexpr std::size_t other_words = 512;
  const std::uint64_t other_call = caller();
  for (const bool is_same_mapping : {true, false}) {
    auto* const memory =
        static_cast<std::uint64_t*>(mmap(nullptr, (stack_words + other_words) * sizeof(std::uint64_t),
                                         PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(static_cast<void*>(memory), MAP_FAILED);
    std::uint64_t* const other = memory + stack_words;
    std::fill_n(other, other_words, other_call);
    if (!is_same_mapping) {
      ASSERT_EQ(mprotect(other, other_words * sizeof(std::uint64_t), PROT_READ), 0);
    }
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, memory, stack_words * sizeof(std::uint64_t));
    pthread_t thread{};
    std::vector<std::uint64_t> calls;
    const auto read_own_stack = [](void* to) -> void* {
      const auto frame = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
      const std::size_t bytes = 2 * stack_words * sizeof(std::uint64_t);
      *static_cast<std::vector<std::uint64_t>*>(to) = CodePlaces(getpid()).calls_on_stack(frame, bytes);
      return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, read_own_stack, &calls), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
    EXPECT_FALSE(calls.empty());
    EXPECT_EQ(std::count(calls.begin(), calls.end(), other_call), 0);
    munmap(memory, (stack_words + other_words) * sizeof(std::uint64_t));
  }
}

}  // namespace
}  // namespace apenet
