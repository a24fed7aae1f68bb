// What the threads of this process and of others do in the host, as /proc shows it.
#pragma once

#include <cstdint>

namespace apenet::ipc {

enum class ThreadState : std::uint8_t {
  ended,
  runs,     // or waits for a processor, a disk, or memory
  limited,  // waits for another thread or process, at most for a limited time
  blocked,  // the same, without a limit
};

// A thread of this process or of another one. Where the host does not show in which call one waits, it
// counts as ThreadState::limited.
struct SeenThread {
  ThreadState state = ThreadState::ended;
  bool is_stopped = false;  // by a signal or a tracer; counts as ThreadState::blocked
  bool is_in_futex = false;
  std::int64_t cpu_ns = 0;  // CPU time that it has used
};
[[nodiscard]] SeenThread see_thread(std::int32_t process, std::int32_t id);
[[nodiscard]] bool has_process_ended(std::uint32_t process);

class ThreadChoice {
 public:
  [[nodiscard]] virtual bool has(std::int32_t id) = 0;

 protected:
  ~ThreadChoice() = default;
};
// The liveliest state of the chosen threads of a process: one that runs, or waits for a limited time, may
// wake a thread that is blocked. None: ThreadState::blocked.
[[nodiscard]] ThreadState liveliest_of(std::int32_t process, ThreadChoice& chosen);
// CPU time that all threads of a process have used.
[[nodiscard]] std::int64_t process_cpu_ns_of(std::int32_t process);

// None of the other threads runs, or has run meanwhile.
[[nodiscard]] bool are_others_blocked();

[[nodiscard]] std::int32_t own_thread_id();
[[nodiscard]] std::int64_t host_now_ns();

}  // namespace apenet::ipc
