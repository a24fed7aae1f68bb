// Clocks: what the program reads is virtual time.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <ctime>

#include "runtime/shim/clocks.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

constexpr std::int64_t ps_per_ns = 1000;
constexpr std::int64_t ns_per_s = 1'000'000'000;

// Reading the clock costs CPU time, so that a program which waits in a loop for a time to come gets there.
std::int64_t read_clock_ns(ipc::Client& client) {
  client.observe_compute();
  client.charge_clock_read();
  return client.clock_ps() / ps_per_ns;
}

timespec at_ns(std::int64_t base_s, std::int64_t ns) {
  return {.tv_sec = base_s + ns / ns_per_s, .tv_nsec = ns % ns_per_s};
}

int real_clock(clockid_t clock, timespec* time) {
  return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
}

timeval to_timeval(std::int64_t base_s, std::int64_t ns) {
  return {.tv_sec = base_s + ns / ns_per_s, .tv_usec = ns % ns_per_s / 1000};
}

}  // namespace

std::int64_t clock_base_s(clockid_t clock) {
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
      return realtime_base_s;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
      return monotonic_base_s;
    default:  // CPU time: an MPI process polls, so it has used its CPU all the time
      return 0;
  }
}

}  // namespace apenet::shim

using apenet::shim::clock_base_s;
using apenet::shim::realtime_base_s;
using apenet::shim::virtual_client;

APENET_EXPORT int clock_gettime(clockid_t clock, timespec* time) noexcept {
  apenet::ipc::Client* client = virtual_client();
  if (client == nullptr) return apenet::shim::real_clock(clock, time);
  *time = apenet::shim::at_ns(clock_base_s(clock), apenet::shim::read_clock_ns(*client));
  return 0;
}

APENET_EXPORT int gettimeofday(timeval* __restrict time, void* __restrict zone) noexcept {
  apenet::ipc::Client* client = virtual_client();
  if (client == nullptr) return static_cast<int>(syscall(SYS_gettimeofday, time, zone));
  *time = apenet::shim::to_timeval(realtime_base_s, apenet::shim::read_clock_ns(*client));
  return 0;
}

APENET_EXPORT time_t time(time_t* result) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}

APENET_EXPORT clock_t clock() noexcept {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * CLOCKS_PER_SEC + now.tv_nsec / (apenet::shim::ns_per_s / CLOCKS_PER_SEC);
}

APENET_EXPORT clock_t times(tms* result) noexcept {
  if (virtual_client() == nullptr) return static_cast<clock_t>(syscall(SYS_times, result));
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  const clock_t ticks_per_s = sysconf(_SC_CLK_TCK);
  const clock_t ticks = now.tv_sec * ticks_per_s + now.tv_nsec / (apenet::shim::ns_per_s / ticks_per_s);
  if (result != nullptr) *result = {.tms_utime = ticks, .tms_stime = 0, .tms_cutime = 0, .tms_cstime = 0};
  return ticks;
}

APENET_EXPORT int getrusage(__rusage_who_t who, rusage* usage) noexcept {
  const int result = static_cast<int>(syscall(SYS_getrusage, who, usage));
  if (result != 0 || virtual_client() == nullptr || who == RUSAGE_CHILDREN) return result;
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  usage->ru_utime = {.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  usage->ru_stime = {.tv_sec = 0, .tv_usec = 0};
  return 0;
}

// Computation that the program declares: see src/api/compute/apenet_compute.h.
APENET_EXPORT void ape_compute_seconds(double seconds) {
  apenet::ipc::Client* client = virtual_client();
  if (client == nullptr || !std::isfinite(seconds) || seconds <= 0) return;
  constexpr double most_s = static_cast<double>(apenet::ipc::end_of_time_ps) * 1e-12;
  client->charge_compute(static_cast<std::int64_t>(std::min(seconds, most_s) * 1e12));
}

APENET_EXPORT void ape_compute_flops(double flops) {
  apenet::ipc::Client* client = virtual_client();
  if (client == nullptr || flops <= 0 || client->header().flops_per_second <= 0) return;
  ape_compute_seconds(flops / static_cast<double>(client->header().flops_per_second));
}
