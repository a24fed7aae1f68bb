// APENET_CHECK: an invariant that is checked in every build.
#pragma once

namespace apenet {

// Prints the place, the condition and the formatted state to stderr and aborts. A simulator that goes on
// after a broken invariant prints wrong numbers, which is worse than none.
[[noreturn, gnu::cold, gnu::format(printf, 4, 5)]] void check_failed(const char* file, int line,
                                                                     const char* condition,
                                                                     const char* format, ...);

}  // namespace apenet

// The message is a printf format and its arguments: the state that makes the failure understandable. printf
// and not streams, so that a check costs its branch and no code around it.
#define APENET_CHECK(condition, ...)                                       \
  do {                                                                     \
    if (!(condition)) [[unlikely]] {                                       \
      ::apenet::check_failed(__FILE__, __LINE__, #condition, __VA_ARGS__); \
    }                                                                      \
  } while (false)
