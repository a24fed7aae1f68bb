// Sleeps end in virtual time: they cost no wall time, and the process's clock advances.
#include <sched.h>
#include <threads.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <optional>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/program_memory.hpp"
#include "runtime/ipc/single_threaded.hpp"
#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/deadlines.hpp"
#include "runtime/shim/host_caller.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

// Open MPI's MPI_Finalize sleeps until its process manager answers, and for a second after it has closed the
// endpoints of one-sided accesses, because some providers need that. Not this one, so it sleeps no longer
// than this at once.
constexpr timespec longest_while_leaving{.tv_sec = 0, .tv_nsec = 10'000'000};

// Whether this is the only thread of a rank whose MPI library is being initialised.
bool is_initialising_alone() {
  ipc::Client* client = ipc::Client::attached();
  return client != nullptr && ipc::is_single_threaded() && client->block().identity.initialising != 0;
}

}  // namespace

APENET_EXPORT int clock_nanosleep(clockid_t clock, int flags, const timespec* request, timespec* remaining) {
  APENET_TIME_CALL;
  ipc::Client* client = clock_client();
  const bool leaves = client != nullptr && is_leaving;
  const bool is_of_host = client == nullptr || leaves;
  const ClockKind kind = is_of_host ? ClockKind::host : kind_of(clock);
  // The host reports invalid arguments.
  if (kind == ClockKind::host || clock == CLOCK_THREAD_CPUTIME_ID || !is_valid(request)) {
    if (leaves && flags == 0 && is_valid(request) && request->tv_sec > 0) request = &longest_while_leaving;
    const bool is_early = client == nullptr && (flags & TIMER_ABSTIME) != 0;
    const EarlyDeadline early(is_early ? request : nullptr);
    return next<int (*)(clockid_t, int, const timespec*, timespec*)>("clock_nanosleep")(
        clock, flags, is_early ? early.get() : request, remaining);
  }
  const std::int64_t now_ps = read_clock_ps(*client);
  timespec from = *request;
  if ((flags & TIMER_ABSTIME) != 0) from.tv_sec -= base_s(kind);
  const std::int64_t since_ps = kind == ClockKind::cpu ? cpu_ps(*client) : now_ps;
  const std::int64_t ps = (flags & TIMER_ABSTIME) != 0 ? to_ps(from) - since_ps : to_ps(from);
  const std::optional<std::int64_t> left_ps = sleep_ps(*client, ps);
  if (!left_ps) return 0;
  if ((flags & TIMER_ABSTIME) != 0) return EINTR;
  return ipc::copy_out_if_wanted(remaining, to_timespec(*left_ps)) ? EINTR : EFAULT;
}

APENET_EXPORT int nanosleep(const timespec* request, timespec* remaining) {
  APENET_TIME_CALL;
  const int error = clock_nanosleep(CLOCK_REALTIME, 0, request, remaining);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

APENET_EXPORT int __nanosleep(const timespec* request, timespec* remaining) {
  APENET_TIME_CALL;
  return nanosleep(request, remaining);
}

APENET_EXPORT int thrd_sleep(const timespec* request, timespec* remaining) {
  APENET_TIME_CALL;
  const int error = clock_nanosleep(CLOCK_REALTIME, 0, request, remaining);
  return error == 0 ? 0 : error == EINTR ? -1 : -2;
}

APENET_EXPORT int usleep(useconds_t microseconds) {
  APENET_TIME_CALL;
  const timespec duration{.tv_sec = microseconds / 1'000'000, .tv_nsec = microseconds % 1'000'000 * 1000};
  return nanosleep(&duration, nullptr);
}

APENET_EXPORT unsigned sleep(unsigned seconds) {
  APENET_TIME_CALL;
  const timespec duration{.tv_sec = seconds, .tv_nsec = 0};
  timespec remaining{};
  return nanosleep(&duration, &remaining) == 0 ? 0 : static_cast<unsigned>(remaining.tv_sec);
}

// MPI libraries yield in their progress loops. Under the simulator an idle process waits for its event, so a
// yield to another idle process would only cost two context switches, or on a busy host a turn of every other
// process there. With several threads that call libraries the yield is needed: the yielding thread has just
// released the library's lock and would take it again before another thread runs.
APENET_EXPORT int sched_yield() noexcept {
  APENET_HOST_CALLER;
  static const auto real = next<int (*)()>("sched_yield");
  ipc::Client* client = virtual_client();
  if (client == nullptr) return is_initialising_alone() ? 0 : real();
  const ipc::Progress& progress = client->progress();
  const bool is_in_library = is_in_call() || progress.waits() || progress.is_testing();
  if (ipc::is_single_threaded()) return is_in_library ? 0 : real();
  ipc::OrderedThread* const own = ordered_thread();
  if (own == nullptr) return is_in_library && !client->has_threads() ? 0 : real();
  // Such a call waits where it checks its sockets (api/sockets/library_checks.hpp), not by yields without
  // end.
  const bool has_mpi = client->block().identity.initialised != 0;
  if (has_mpi && apenet_waiting_mpi_call() != 0) own->idle_yields = 0;
  thread_order().yield(*own);  // before the action: a thread that still has to give way does so once
  const OrderedAction action(*own);
  return 0;
}

}  // namespace apenet::shim
