// Whether a timer of a process will interrupt what its threads wait for.
#pragma once

#include <cstdint>

namespace apenet {

// Whether the process has a timer whose signal it handles. alarm_ns: as in ipc::OutsideNote. A timer of
// timer_create() counts whether it runs or not, which the host does not tell.
[[nodiscard]] bool has_handled_timer(int process_id, std::int64_t alarm_ns);

}  // namespace apenet
