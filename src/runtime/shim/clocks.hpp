// The process's clock as the C library's functions show it, and where virtual time zero lies on each of the
// host's clocks.
#pragma once

#include <cstdint>
#include <ctime>

#include "runtime/ipc/client.hpp"

namespace apenet::shim {

// 25 July 2005, 00:00 UTC, the day on which the results of the 2005 clusters were shown: a fixed date, so
// that a program that prints the time prints the same in every run.
inline constexpr std::int64_t realtime_base_s = 1'122'249'600;
// Beyond any uptime, so that a monotonic clock read before MPI_Init does not lie in the future. Far enough
// from realtime_base_s that a deadline tells which clock it was made from.
inline constexpr std::int64_t monotonic_base_s = 1'000'000'000;

inline constexpr std::int64_t ps_per_ns = 1000;
inline constexpr std::int64_t ns_per_s = 1'000'000'000;
inline constexpr std::int64_t ps_per_s = ps_per_ns * ns_per_s;

enum class ClockKind : std::uint8_t {
  realtime,
  monotonic,
  cpu,   // of this process or one of its threads
  host,  // of another process, of a device, or none at all: the host's answer stands
};

[[nodiscard]] ClockKind kind_of(clockid_t clock);
[[nodiscard]] std::int64_t base_s(ClockKind kind);

// The client of a process whose clocks are virtual: from the end of MPI_Init to the process's end.
ipc::Client* clock_client();

// Virtual time as the program sees it. It goes on behind MPI_Finalize, where it is part of no result.
[[nodiscard]] std::int64_t now_ps(ipc::Client& client);
// The same for a read, which costs CPU time: a program that waits in a loop for a time to come gets there.
std::int64_t read_clock_ps(ipc::Client& client);
// CPU time so far. A process polls while it waits for MPI; only sleep takes none.
[[nodiscard]] std::int64_t cpu_ps(ipc::Client& client);

// The program sleeps. The others live on meanwhile: a program that sleeps between two looks at its memory
// finds there what has come.
void sleep_ps(ipc::Client& client, std::int64_t ps);

}  // namespace apenet::shim
