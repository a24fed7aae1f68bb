// Tells whether signals, above all those of its timers, will interrupt the waits of a process's threads.
#pragma once

#include <cstdint>

namespace apenet {

// Sets of signals have one bit each: bit 0 is signal 1.

// The signals that the process handles.
[[nodiscard]] std::uint64_t handled_signals(int process_id);
// Whether the process has a timer whose signal it handles, or is among `awaited`. alarm_ns: as in
// ipc::ImageRecord. A timer of timer_create() counts whether it runs or not, which the host does not tell.
[[nodiscard]] bool has_timer(int process_id, std::int64_t alarm_ns, std::uint64_t awaited = 0);

}  // namespace apenet
