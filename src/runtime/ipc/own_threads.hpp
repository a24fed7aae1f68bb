// What the other threads of this process do in the host, as /proc shows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace apenet::ipc {

enum class ThreadState : std::uint8_t {
  ended,
  runs,     // or waits for a processor, a disk, or memory
  blocked,  // until another thread or process wakes it
  limited,  // the same, but at most for a limited time
};

// State of a thread, by its id of the host.
[[nodiscard]] ThreadState state_of_thread(std::int32_t id);

enum class Others : std::uint8_t {
  act,      // one of them runs, or has run meanwhile
  outside,  // all are blocked, one by something that may lie outside the process
  blocked,
};

struct BlockedThread {
  std::int32_t id = 0;
  bool is_in_futex = false;
};

// What the caller knows of threads.
class OutsideJudge {
 public:
  // Whether the thread sleeps until virtual time has passed, so that it need not be looked at.
  [[nodiscard]] virtual bool is_asleep(std::int32_t thread) const = 0;
  // Whether something outside the process may end the wait of a blocked thread.
  [[nodiscard]] virtual bool may_end_outside(const BlockedThread& thread) const = 0;

 protected:
  ~OutsideJudge() = default;
};

// judge: nullptr: no wait is told from another, and the result is not `outside`.
[[nodiscard]] Others look_at_others(const OutsideJudge* judge = nullptr);

// It is blocked, and not in a futex among these words.
[[nodiscard]] bool is_blocked_beside(std::int32_t id, std::span<const std::byte> words);

[[nodiscard]] std::int32_t own_thread_id();
// How often the calling thread has blocked in the host.
[[nodiscard]] std::int64_t own_switches();
// CPU time that a thread has used.
[[nodiscard]] std::int64_t cpu_ns_of(std::int32_t id);
[[nodiscard]] std::int64_t host_now_ns();

}  // namespace apenet::ipc
