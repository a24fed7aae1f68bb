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

// A thread of another process. Which call it waits in, the host shows to a few processes only.
struct OtherThread {
  ThreadState state = ThreadState::ended;
  bool is_stopped = false;  // by a signal or a tracer; counts as ThreadState::blocked
  std::int64_t cpu_ns = 0;
};
[[nodiscard]] OtherThread read_thread_of(std::int32_t process, std::int32_t id);
[[nodiscard]] bool has_process_ended(std::uint32_t process);

// It waits in a futex.
[[nodiscard]] bool waits_for_thread(std::int32_t id);
// None of the other threads runs, or has run meanwhile.
[[nodiscard]] bool are_others_blocked();

[[nodiscard]] std::int32_t own_thread_id();
// CPU time that a thread has used.
[[nodiscard]] std::int64_t cpu_ns_of(std::int32_t id);
[[nodiscard]] std::int64_t host_now_ns();

}  // namespace apenet::ipc
