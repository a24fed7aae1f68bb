// Watched calls: the system calls that a thread makes between two sleeps in which its rank has done nothing
// (fruitless_sleeps.hpp). A list names those that cannot be a check for something outside; all others may be
// one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace apenet::shim {

struct WatchedCall {
  long number = 0;
  std::array<long, 6> arguments{};
  bool is_librarys = false;  // the C library makes it, in a function that the shim does not replace
  bool is_judged = false;    // in one that it replaces
};

// Whether the call must find the thread as it is without a watch: it starts a process or thread, or ends one.
[[nodiscard]] bool pauses_watch(long number);

// Notes the call if it may be a check. Returns the kernel's result if the call had to be made to know;
// nullopt: it is still to be made.
std::optional<long> note_watched(const WatchedCall& call);

}  // namespace apenet::shim
