// Where virtual time zero lies on each of the host's clocks.
#pragma once

#include <cstdint>
#include <ctime>

namespace apenet::shim {

// 25 July 2005, 00:00 UTC, the day on which the results of the 2005 clusters were shown: a fixed date, so
// that a program that prints the time prints the same in every run.
inline constexpr std::int64_t realtime_base_s = 1'122'249'600;
// Beyond any uptime, so that a monotonic clock read before MPI_Init does not lie in the future. Far enough
// from realtime_base_s that a deadline tells which clock it was made from.
inline constexpr std::int64_t monotonic_base_s = 1'000'000'000;

[[nodiscard]] std::int64_t clock_base_s(clockid_t clock);

}  // namespace apenet::shim
