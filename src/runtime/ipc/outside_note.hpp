// What a rank waits for outside the simulation, in sleeps that therefore take real time.
#pragma once

#include <atomic>
#include <cstdint>

namespace apenet::ipc {

enum class OutsideCause : std::uint32_t {
  none,
  child,       // a process that the rank has started, or one that such a process has started
  process,     // another process
  connection,  // a connection that is refused
  lock,        // a lock or semaphore that another process holds
  descriptor,  // data in a pipe, socket or file
  file,        // a file that appears, vanishes or changes
  answer,      // another status of a program that the rank starts again and again
  object,      // shared memory, a semaphore or a queue that another process makes
  call,        // another answer of a system call
  signal,      // nothing: a signal from outside has ended a sleep
  count,
};

[[nodiscard]] constexpr std::uint32_t bit_of(OutsideCause what) {
  return 1U << static_cast<std::uint32_t>(what);
}

// Owner: the process; the simulator reads it at any time. Sets have a bit for each kind.
struct OutsideNote {
  std::atomic<std::uint32_t> changed{0};              // two checks without a sleep between them differed
  std::atomic<std::uint32_t> waited{0};               // sleeps have taken real time
  std::atomic<std::uint32_t> given_up{0};             // they took it for too long, and take none any more
  std::atomic<std::uint32_t> call{0};                 // the last one's number, if for OutsideCause::call
  std::atomic<OutsideCause> now{OutsideCause::none};  // a sleep takes real time at this moment
  // As in ImageRecord.
  std::atomic<std::int64_t> alarm_ns{0};
};

static_assert(std::atomic<OutsideCause>::is_always_lock_free);

}  // namespace apenet::ipc
