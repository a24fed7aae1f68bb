// What the other threads of this process do in the host, as /proc shows it.
#pragma once

#include <cstdint>

namespace apenet::ipc {

enum class ThreadState : std::uint8_t {
  ended,
  runs,     // or waits for a processor, a disk, or memory
  blocked,  // until another thread or process wakes it
  limited,  // the same, but at most for a limited time
};

// State of a thread, by its id of the host.
[[nodiscard]] ThreadState state_of_thread(std::int32_t id);

// It waits in a futex.
[[nodiscard]] bool waits_for_thread(std::int32_t id);
// None of the other threads runs, or has run meanwhile.
[[nodiscard]] bool are_others_blocked();

[[nodiscard]] std::int32_t own_thread_id();
// CPU time that a thread has used.
[[nodiscard]] std::int64_t cpu_ns_of(std::int32_t id);
[[nodiscard]] std::int64_t host_now_ns();

}  // namespace apenet::ipc
