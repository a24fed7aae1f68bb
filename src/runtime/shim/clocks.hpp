// The process's virtual clock in the units of the C library, and the value of each host clock at virtual time
// zero.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>

#include "runtime/ipc/client.hpp"

namespace apenet::shim {

inline constexpr std::int64_t realtime_base_s = ipc::date_of_zero_s;
// A process that has not begun virtual time sees dates before that of virtual time zero, so that its calendar
// does not go back there: services that take the time since a peer's last sign of life would find it dead.
// The run began so long before zero. If it takes longer to begin virtual time, the calendar does go back.
inline constexpr std::int64_t early_s = 60;
// Larger than any uptime, so that a monotonic time read before MPI_Init does not lie in the future. Far
// enough from realtime_base_s to tell from a deadline which clock it refers to.
inline constexpr std::int64_t monotonic_base_s = 1'000'000'000;

inline constexpr std::int64_t ps_per_ns = 1000;
inline constexpr std::int64_t ns_per_s = 1'000'000'000;
inline constexpr std::int64_t ps_per_s = ps_per_ns * ns_per_s;

enum class ClockKind : std::uint8_t {
  realtime,
  monotonic,
  cpu,   // CPU time of this process or one of its threads
  host,  // a clock of another process or a device, or an invalid one: the host answers
};

[[nodiscard]] ClockKind kind_of(clockid_t clock);
[[nodiscard]] std::int64_t base_s(ClockKind kind);

// The client if the process's clocks are virtual (from the end of MPI_Init to the process's end), else
// nullptr.
ipc::Client* clock_client();

// Host's date minus the date that the process sees; 0 once it has begun virtual time. The processes of a run
// that never begin it (a script around a rank, the children of a rank) keep these dates.
[[nodiscard]] std::int64_t early_shift_s();

// Virtual time as the program sees it. It continues after MPI_Finalize, where it does not count in any
// result.
[[nodiscard]] std::int64_t now_ps(ipc::Client& client);
// As now_ps(), but charges the CPU cost of the read, so that a program that reads the clock in a loop until a
// certain time makes progress.
std::int64_t read_clock_ps(ipc::Client& client);
// This thread's reads charge nothing, and its sleeps take the host's time: what it does is none of the
// program's, and the host decides when.
extern constinit thread_local bool reads_clock_free __attribute__((tls_model("initial-exec")));
// This thread is in a call that the program's own code has made (direct_calls.hpp), which may be that of a
// runtime.
extern constinit thread_local bool is_in_direct_call __attribute__((tls_model("initial-exec")));
// This thread is in MPI_Finalize or a session's, where the library waits for its process manager.
extern constinit thread_local bool is_leaving __attribute__((tls_model("initial-exec")));
// CPU time used. A process polls while it waits for MPI, so only sleeping takes no CPU time.
[[nodiscard]] std::int64_t cpu_ps(ipc::Client& client);

// The program sleeps, and the other processes continue: a program that sleeps between two checks of its
// memory finds there what has arrived. Returns what is left of the time if a signal's handler has ended the
// sleep, or one of the files is ready.
std::optional<std::int64_t> sleep_ps(ipc::Client& client, std::int64_t ps, ipc::OwnFileWait* files = nullptr);
// The same until virtual_ps, if that lies in the future, whatever signals come.
void sleep_until(ipc::Client& client, std::int64_t virtual_ps);

}  // namespace apenet::shim
