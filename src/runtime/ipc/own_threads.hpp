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
  outside,  // all are blocked, the program's first thread by something other than a thread
  blocked,
};

[[nodiscard]] Others look_at_others();

// It is blocked, and not in a futex among these words.
[[nodiscard]] bool is_blocked_beside(std::int32_t id, std::span<const std::byte> words);

[[nodiscard]] std::int32_t own_thread_id();
// How often the calling thread has blocked in the host.
[[nodiscard]] std::int64_t own_switches();
// CPU time that a thread has used.
[[nodiscard]] std::int64_t cpu_ns_of(std::int32_t id);
[[nodiscard]] std::int64_t host_now_ns();

}  // namespace apenet::ipc
