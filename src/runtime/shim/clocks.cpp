// The C library's clock functions, which return virtual time.
#include "runtime/shim/clocks.hpp"

#include <pthread.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>

#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/host_caller.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {
namespace {

using ipc::host_call;

// Negative clock ids belong to processes and threads: the inverted process or thread id, shifted left by
// three type bits.
ClockKind kind_of_numbered(clockid_t clock) {
  constexpr std::uint32_t of_thread = 4;
  constexpr std::uint32_t type_bits = 3;
  constexpr std::uint32_t device = 3;
  const auto bits = static_cast<std::uint32_t>(clock);
  if ((bits & type_bits) == device) return ClockKind::host;
  const auto process = static_cast<pid_t>(~bits >> 3);
  if ((bits & of_thread) == 0) return process == 0 || process == getpid() ? ClockKind::cpu : ClockKind::host;
  timespec time{};  // the host knows which threads belong to this process
  return host_call(SYS_clock_gettime, clock, &time) == 0 ? ClockKind::cpu : ClockKind::host;
}

timespec at_ps(std::int64_t base_s, std::int64_t ps) {
  return {.tv_sec = base_s + ps / ps_per_s, .tv_nsec = ps % ps_per_s / ps_per_ns};
}

// As in <sys/timeb.h>, which newer C libraries lack.
struct Timeb {
  time_t time;
  unsigned short millitm;
  short timezone;
  short dstflag;
};

// A call may have waited in the host, where no order has been told of its end: the thread's time is then the
// latest at which any other has acted. In a handler that has interrupted a wait in the order, it is that of
// the signal.
void come_from_host(const ipc::Client& client) {
  ipc::OrderedThread* const own = client.ordered();
  if (own == nullptr) return;
  thread_order().come_inside(*own);
  thread_order().come_to_time_of_handler(*own);
}

}  // namespace

constinit thread_local bool reads_clock_free = false;
// How long the waits of such a thread were that nothing has ended: its own clock alone moves, and shows it
// what is due.
static constinit thread_local std::int64_t waited_free_ps __attribute__((tls_model("initial-exec"))) = 0;
constinit thread_local bool is_leaving = false;
constinit thread_local bool is_in_direct_call = false;

ClockKind kind_of(clockid_t clock) {
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_REALTIME_ALARM:
    case CLOCK_TAI:
      return ClockKind::realtime;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
    case CLOCK_BOOTTIME_ALARM:
      return ClockKind::monotonic;
    case CLOCK_PROCESS_CPUTIME_ID:
    case CLOCK_THREAD_CPUTIME_ID:
      return ClockKind::cpu;
    default:
      return clock < 0 ? kind_of_numbered(clock) : ClockKind::host;
  }
}

std::int64_t base_s(ClockKind kind) {
  if (kind == ClockKind::realtime) return realtime_base_s;
  return kind == ClockKind::monotonic ? monotonic_base_s : 0;
}

ipc::Client* clock_client() {
  ipc::Client* client = ipc::Client::attached();
  if (client == nullptr || !client->started() || host_calls > 0) return nullptr;
  if (reads_clock_free) return client;
  client->attend();
  if (is_paced) catch_up_pace(*client);
  return client;
}

std::int64_t early_shift_s() {
  if (host_calls > 0) return 0;
  const ipc::Client* client = ipc::Client::attached();
  if (client != nullptr && client->started()) return 0;
  const std::int64_t made_at_s = ipc::Client::run_made_at_s();
  return made_at_s == 0 ? 0 : made_at_s - (realtime_base_s - early_s);
}

std::int64_t now_ps(ipc::Client& client) {
  return client.time_ps() + waited_free_ps;
}

std::int64_t read_clock_ps(ipc::Client& client) {
  if (reads_clock_free) return now_ps(client);
  come_from_host(client);
  if (client.block().identity.finalised == 0) {
    client.charge_clock_read(is_in_direct_call);
  } else {
    constexpr std::int64_t afterwards_read_ps = 50 * ps_per_ns;
    client.block().clock.afterwards_ps.add(afterwards_read_ps);
  }
  // A timer is due by the rank's time: the thread takes part in that.
  if (VirtualTimers::of_process().first_ps() <= now_ps(client) && client.ordered() != nullptr) {
    client.lock();
    client.unlock();
  }
  if (client.has_due_timer()) apenet_timers_due();
  return now_ps(client);
}

std::int64_t cpu_ps(ipc::Client& client) {
  // CPU time is the process's: a read in a thread's own time has not advanced it.
  if (client.ordered() != nullptr) {
    client.lock();
    client.charge(std::max(client.costs(0).clock_read.ps(), std::int64_t{50 * ps_per_ns}));
    client.unlock();
  }
  const ipc::Clock& clock = client.block().clock;
  return client.clock_ps() + clock.afterwards_ps.get() - clock.slept_ps.get();
}

std::optional<std::int64_t> sleep_ps(ipc::Client& client, std::int64_t ps, ipc::OwnFileWait* files) {
  if (is_leaving || ps <= 0) return {};
  if (reads_clock_free) {
    const timespec time{.tv_sec = ps / ps_per_s, .tv_nsec = ps % ps_per_s / ps_per_ns};
    timespec* const remaining = nullptr;
    host_call(SYS_nanosleep, &time, remaining);
    waited_free_ps += ps;
    return {};
  }
  come_from_host(client);
  VirtualTimers& timers = VirtualTimers::of_process();
  if (client.has_due_timer()) timers.fire(client);
  std::int64_t now = now_ps(client);
  const std::int64_t until_ps = now + std::min(ps, ipc::end_of_time_ps - now);
  for (; now < until_ps; now = now_ps(client)) {
    // A timer that the thread's own time has passed is due when the rank's has.
    const std::int64_t end_ps = timers.first_ps() > now ? std::min(until_ps, timers.first_ps()) : until_ps;
    timers.note_sleep(end_ps);
    OutsideWait outside(client, end_ps - now);
    pthread_testcancel();
    const std::optional<std::int64_t> beside = outside.sleep_beside_children();
    const std::int64_t left_ps = beside ? *beside : client.sleep(end_ps - now, files);
    pthread_testcancel();
    if (!beside) outside.pass(left_ps);
    const std::int64_t rest_ps = until_ps - end_ps + left_ps;
    const bool is_ended = left_ps > 0 && client.signal_ps() > now_ps(client);
    const bool is_interrupted = is_ended || (client.has_due_timer() && timers.fire(client, true));
    timers.note_sleep(0);
    if (is_interrupted) return rest_ps;
  }
  return {};
}

void sleep_until(ipc::Client& client, std::int64_t virtual_ps) {
  if (reads_clock_free) {  // the wait has been in the host
    waited_free_ps += std::max<std::int64_t>(virtual_ps - now_ps(client), 0);
    return;
  }
  come_from_host(client);
  while (sleep_ps(client, virtual_ps - now_ps(client))) continue;
}

APENET_EXPORT int clock_gettime(clockid_t clock, timespec* time) noexcept {
  APENET_TIME_CALL;
  ipc::Client* client = clock_client();
  const ClockKind kind = client == nullptr ? ClockKind::host : kind_of(clock);
  // The host reports the error for a null pointer.
  if (kind == ClockKind::host || is_null(time)) {
    const int result = host_call(SYS_clock_gettime, clock, time);
    if (result == 0 && client == nullptr && kind_of(clock) == ClockKind::realtime)
      time->tv_sec -= early_shift_s();
    return result;
  }
  const std::int64_t now_ps = read_clock_ps(*client);
  *time = at_ps(base_s(kind), kind == ClockKind::cpu ? cpu_ps(*client) : now_ps);
  return 0;
}

APENET_EXPORT int clock_getres(clockid_t clock, timespec* resolution) noexcept {
  APENET_TIME_CALL;
  if (clock_client() == nullptr || kind_of(clock) == ClockKind::host) {
    return host_call(SYS_clock_getres, clock, resolution);
  }
  if (resolution != nullptr) *resolution = {.tv_sec = 0, .tv_nsec = 1};
  return 0;
}

APENET_EXPORT int gettimeofday(timeval* __restrict time, void* __restrict zone) noexcept {
  APENET_TIME_CALL;
  if (clock_client() == nullptr) {
    const int result = host_call(SYS_gettimeofday, time, zone);
    if (result == 0 && !is_null(time)) time->tv_sec -= early_shift_s();
    return result;
  }
  if (zone != nullptr) *static_cast<struct timezone*>(zone) = {.tz_minuteswest = 0, .tz_dsttime = 0};
  if (is_null(time)) return 0;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *time = {.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return 0;
}

// Programs built against the C library's internal name call this.
APENET_EXPORT int __gettimeofday(timeval* __restrict time, void* __restrict zone) noexcept {
  APENET_TIME_CALL;
  return gettimeofday(time, zone);
}

APENET_EXPORT time_t time(time_t* result) noexcept {
  APENET_TIME_CALL;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}

APENET_EXPORT int timespec_get(timespec* time, int base) noexcept {
  APENET_TIME_CALL;
  if (base != TIME_UTC) return next<int (*)(timespec*, int)>("timespec_get")(time, base);
  return clock_gettime(CLOCK_REALTIME, time) == 0 ? base : 0;
}

APENET_EXPORT int timespec_getres(timespec* resolution, int base) noexcept {
  if (clock_client() == nullptr || base != TIME_UTC) {
    return next<int (*)(timespec*, int)>("timespec_getres")(resolution, base);
  }
  return clock_getres(CLOCK_REALTIME, resolution) == 0 ? base : 0;
}

APENET_EXPORT int ftime(Timeb* result) noexcept {
  APENET_TIME_CALL;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *result = {.time = now.tv_sec,
             .millitm = static_cast<unsigned short>(now.tv_nsec / 1'000'000),
             .timezone = 0,
             .dstflag = 0};
  return 0;
}

// The date of a run is fixed, and the program may not set the host's.
APENET_EXPORT int clock_settime(clockid_t clock, const timespec* time) noexcept {
  if (clock_client() == nullptr) return host_call(SYS_clock_settime, clock, time);
  errno = EPERM;
  return -1;
}

APENET_EXPORT int settimeofday(const timeval* time, const struct timezone* zone) noexcept {
  if (clock_client() == nullptr) return host_call(SYS_settimeofday, time, zone);
  errno = EPERM;
  return -1;
}

// Computation that the program declares; see src/api/compute/apenet_compute.h.
APENET_EXPORT void ape_compute_seconds(double seconds) {
  ipc::Client* client = virtual_client();
  if (client == nullptr || !std::isfinite(seconds) || seconds <= 0) return;
  client->note_thread();
  constexpr double most_s = static_cast<double>(ipc::end_of_time_ps) * 1e-12;
  client->charge_compute(static_cast<std::int64_t>(std::min(seconds, most_s) * 1e12));
}

APENET_EXPORT void ape_compute_flops(double flops) {
  ipc::Client* client = virtual_client();
  if (client == nullptr || flops <= 0 || client->header().flops_per_second <= 0) return;
  ape_compute_seconds(flops / static_cast<double>(client->header().flops_per_second));
}

}  // namespace apenet::shim
