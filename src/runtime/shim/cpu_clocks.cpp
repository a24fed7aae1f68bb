// CPU time: virtual time without the time that the program slept.
//
// All threads of a process share its clock, so each thread has the CPU time of the process.
#include <sys/resource.h>
#include <sys/times.h>
#include <unistd.h>

#include <cstdint>

#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/host_caller.hpp"
#include "runtime/shim/real.hpp"

using apenet::ipc::host_call;
using apenet::shim::clock_client;

APENET_EXPORT clock_t clock() noexcept {
  APENET_TIME_CALL;
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * CLOCKS_PER_SEC + now.tv_nsec / (apenet::shim::ns_per_s / CLOCKS_PER_SEC);
}

APENET_EXPORT clock_t times(tms* result) noexcept {
  APENET_TIME_CALL;
  apenet::ipc::Client* client = clock_client();
  if (client == nullptr) return apenet::shim::next<clock_t (*)(tms*)>("times")(result);
  const clock_t ps_per_tick = apenet::shim::ps_per_s / sysconf(_SC_CLK_TCK);
  const std::int64_t now_ps = apenet::shim::read_clock_ps(*client);
  if (result != nullptr) {
    *result = {.tms_utime = apenet::shim::cpu_ps(*client) / ps_per_tick,
               .tms_stime = 0,
               .tms_cutime = 0,
               .tms_cstime = 0};
  }
  return now_ps / ps_per_tick;
}

APENET_EXPORT int getrusage(__rusage_who_t who, rusage* usage) noexcept {
  APENET_TIME_CALL;
  const int result = host_call(SYS_getrusage, who, usage);
  if (result != 0 || clock_client() == nullptr || who == RUSAGE_CHILDREN) return result;
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  usage->ru_utime = {.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  usage->ru_stime = {.tv_sec = 0, .tv_usec = 0};
  return 0;
}
