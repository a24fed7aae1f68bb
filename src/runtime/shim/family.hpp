// Reports whether the processes that this one has started are active.
//
// Called in sleeps of the program, which it may also make in signal handlers. So nothing here allocates
// memory, takes a lock, keeps a file open or changes errno.
#pragma once

#include <cstdint>

namespace apenet::shim {

enum class Activity : std::uint8_t {
  none,     // each waits for another process of the family, in a pipe, a futex or for its end
  unknown,  // one waits, without a time limit, for something that may lie outside
  limited,  // one is in a wait with a time limit, or the host does not tell
  works,    // one runs or waits for a disk
};

struct Family {
  Activity activity = Activity::none;
  std::uint64_t children = 0;     // a hash of the children's process ids
  std::uint64_t descendants = 0;  // the same of all descendants, and of which have ended
};

[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  return (hash ^ value) * 0x9e3779b97f4a7c15U;
}

// Whether the process has children, even ones that have ended.
[[nodiscard]] bool has_children();
// The same for those that do not act in the order of this process.
[[nodiscard]] bool has_children_outside();
[[nodiscard]] Family read_family();

// Whether the process's group is orphaned: SIGTSTP, SIGTTIN and SIGTTOU do not stop it.
[[nodiscard]] bool is_group_orphaned(int process);

}  // namespace apenet::shim
