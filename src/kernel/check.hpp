// APENET_CHECK: an invariant that every build checks.
#pragma once

namespace apenet {

// Prints location, condition and formatted state to stderr, and aborts. A simulator that continues after a
// violated invariant prints wrong numbers, which is worse than none.
[[noreturn, gnu::cold, gnu::format(printf, 4, 5)]] void check_failed(const char* file, int line,
                                                                     const char* condition,
                                                                     const char* format, ...);

}  // namespace apenet

// The message is a printf format with arguments, and contains the state that explains the failure. printf
// instead of streams, so that a check adds only a branch to the code around it.
#define APENET_CHECK(condition, ...)                                       \
  do {                                                                     \
    if (!(condition)) [[unlikely]] {                                       \
      ::apenet::check_failed(__FILE__, __LINE__, #condition, __VA_ARGS__); \
    }                                                                      \
  } while (false)
