// The system call in which a thread sleeps, as /proc/PID/task/TID/syscall shows it.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "runtime/ipc/old_calls.hpp"

namespace apenet::ipc {

// number is -1 if the thread is in no system call or the host does not tell.
struct SystemCall {
  long number = -1;
  std::array<std::uint64_t, 6> arguments{};
  std::uint64_t stack = 0;  // the thread's stack pointer; 0 if the host does not tell
};

// Reads the text of the file: "0 0x3 0x7ffd...", or "running" for a thread that is in no system call. Called
// in sleeps of the program, also in its signal handlers, so it allocates nothing.
[[nodiscard]] inline SystemCall parse_system_call(std::string_view text) {
  SystemCall call;
  const char* const end = text.data() + text.size();
  auto parsed = std::from_chars(text.data(), end, call.number);
  if (parsed.ec != std::errc()) return SystemCall{};
  const auto read = [&](std::uint64_t& word) {
    constexpr std::string_view prefix = " 0x";
    if (!std::string_view(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr)).starts_with(prefix)) return;
    parsed = std::from_chars(parsed.ptr + prefix.size(), end, word, 16);
  };
  for (std::uint64_t& argument : call.arguments) read(argument);
  read(call.stack);
  // As the C library makes pause() where the kernel has no such call.
  if (call.number == SYS_ppoll && call.arguments[1] == 0 && call.arguments[2] == 0)
    call.number = old_call::pause;
  return call;
}

// The thread waits for another thread without a timeout.
[[nodiscard]] inline bool waits_for_thread(const SystemCall& call) {
  if (call.number != SYS_futex) return false;
  const std::uint64_t operation = call.arguments[1] & static_cast<std::uint64_t>(FUTEX_CMD_MASK);
  const bool waits = operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET || operation == FUTEX_LOCK_PI;
  return waits && call.arguments[3] == 0;  // no timeout
}

// The system call returns by itself after some time.
[[nodiscard]] inline bool has_time_limit(const SystemCall& call) {
  switch (call.number) {
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_restart_syscall:
      return true;
    case SYS_futex:
      return call.arguments[3] != 0;
    case old_call::poll:
      return static_cast<std::int32_t>(call.arguments[2]) > 0;
    case old_call::epoll_wait:
    case SYS_epoll_pwait:
      return static_cast<std::int32_t>(call.arguments[3]) > 0;
    case SYS_ppoll:
      return call.arguments[2] != 0;
    case old_call::select:
    case SYS_pselect6:
      return call.arguments[4] != 0;
    case SYS_rt_sigtimedwait:
      return call.arguments[2] != 0;
    case SYS_semtimedop:
    case SYS_futex_waitv:
    case SYS_epoll_pwait2:
      return call.arguments[3] != 0;
    case SYS_recvmmsg:
    case SYS_mq_timedreceive:
    case SYS_mq_timedsend:
      return call.arguments[4] != 0;
    default:
      return false;
  }
}

}  // namespace apenet::ipc
