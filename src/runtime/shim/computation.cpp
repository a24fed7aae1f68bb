#include "runtime/shim/computation.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/ipc/compute_table.hpp"
#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/call_path.hpp"
#include "runtime/shim/probe.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/region_table.hpp"
#include "runtime/shim/uncharged.hpp"

// A program may bring a CPU clock of its own, in picoseconds: one that counts its work instead of the host's
// time makes recordings that repeat exactly.
extern "C" __attribute__((weak)) std::int64_t apenet_cpu_time_ps();

namespace apenet::shim {
namespace {

using ipc::ComputeMode;

[[gnu::noinline]] std::int64_t cpu_time_ps() {
  if (apenet_cpu_time_ps != nullptr) return apenet_cpu_time_ps();
  timespec now{};
  ipc::host_call(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000'000 + now.tv_nsec * 1000;
}

// What a read of the clock adds to each region.
std::int64_t read_cost_ps() {
  constexpr int reads = 64;
  std::int64_t least_ps = INT64_MAX;
  for (int i = 0; i < reads; ++i) {
    const std::int64_t before_ps = cpu_time_ps();
    least_ps = std::min(least_ps, cpu_time_ps() - before_ps);
  }
  return std::max<std::int64_t>(least_ps, 0);
}

// State of the process. Set before computation_observed, except the table.
struct Process {
  ComputeMode mode = ComputeMode::none;
  std::int64_t read_cost_ps = 0;
  std::mutex mutex;  // protects what follows
  RegionTable regions;
  bool is_reported = false;
};

Process& process() {
  static constinit Process value;
  return value;
}

// What a thread did last.
enum class Since : std::uint8_t {
  began,    // nothing yet
  in_host,  // a call that took the host's time
  left,     // a call in virtual time, at Thread::left_ps
};

struct Thread {
  std::uint32_t depth = 0;               // calls in progress
  std::uint32_t site = CallSites::none;  // site of the call in progress, or of the last one
  Since since = Since::began;
  std::int64_t left_ps = 0;     // its CPU clock at the end of that call
  std::int64_t probe_ns = 0;    // before the region that began then; 0: not probed
  std::int64_t charged_ps = 0;  // charged for that region when it began
  CallPath calls;               // up to the last one
  UnchargedComputation uncharged;
};

constinit thread_local Thread own_thread __attribute__((tls_model("initial-exec")));

bool is_main_thread() {
  return static_cast<pid_t>(syscall(SYS_gettid)) == getpid();
}

// Learns from the simulation whether and how computation counts.
[[gnu::noinline]] Observed begin() {
  ipc::Client* client = rank_client();
  if (client == nullptr) return computation_observed.load();  // a process that a rank has started: always
  static std::mutex beginning;
  const std::lock_guard<std::mutex> guard(beginning);
  const Observed known = computation_observed.load();
  if (known != Observed::unknown) return known;
  Process& own = process();
  own.mode = client->header().compute_mode;
  if (own.mode == ComputeMode::profile) {
    const char* path = std::getenv(ipc::compute_table_variable);
    own.regions.load(path != nullptr ? path : "", client->rank());
  } else if (own.mode != ComputeMode::none) {
    own.read_cost_ps = read_cost_ps();
  }
  // Where the cycle counter is trapped, reading it would take long and show virtual time.
  const bool is_trapped = std::getenv("APENET_TRAP_TSC") != nullptr;
  const Observed observed = own.mode != ComputeMode::none ? Observed::charged
                            : is_trapped                  ? Observed::no
                                                          : Observed::uncharged;
  computation_observed.store(observed);
  return observed;
}

std::uint32_t site_of(const void* caller, const char* function) {
  Process& own = process();
  if (own.mode == ComputeMode::measured) return CallSites::none;
  const std::lock_guard<std::mutex> guard(own.mutex);
  return own.regions.sites().find(caller, function);
}

bool is_alone(ipc::Client& client) {
  return client.block().grant.core == ipc::Core::own_and_warm;
}

void record(ipc::Client& client, std::uint32_t from, std::uint32_t to, std::int64_t spent_ps) {
  Process& own = process();
  const bool alone = is_alone(client);
  const std::int64_t probe_ns = alone ? std::max(own_thread.probe_ns, time_probe_ns()) : 0;
  const std::lock_guard<std::mutex> guard(own.mutex);
  Region* region = own.regions.find(from, to);
  if (region == nullptr) return;
  own.regions.note_call_path(*region, own_thread.calls.hash());
  region->passes.add({.number = region->count, .time_ps = spent_ps, .probe_ns = probe_ns, .is_alone = alone});
  ++region->count;
  (alone ? region->alone : region->beside).add(spent_ps);
}

// What is left to charge of what the profile says of the region; nothing if it does not have it.
std::int64_t cost_ps(std::uint32_t from, std::uint32_t to) {
  Process& own = process();
  const std::int64_t charged_ps = std::exchange(own_thread.charged_ps, 0);
  const std::lock_guard<std::mutex> guard(own.mutex);
  Region* region = own.regions.find(from, to);
  if (region != nullptr) ++region->count;
  const std::int64_t whole_ps = region != nullptr ? std::max<std::int64_t>(region->cost_ps, 0) : 0;
  if (whole_ps < charged_ps) own.regions.forget(own_thread.calls.hash());
  return whole_ps - charged_ps;
}

// The call in progress belongs to the call path of what follows.
void note_call() {
  Process& own = process();
  if (own.mode == ComputeMode::measured) return;
  const std::lock_guard<std::mutex> guard(own.mutex);
  own_thread.calls.add(own.regions.key_of(own_thread.site));
}

// Others go on while the thread computes.
void overlap_compute(ipc::Client& client) {
  Process& own = process();
  {
    const std::lock_guard<std::mutex> guard(own.mutex);
    own_thread.charged_ps = own.regions.least_after(own_thread.calls.hash());
  }
  if (own_thread.charged_ps > 0) client.overlap_compute(own_thread.charged_ps);
}

// The thread has computed since its last call.
void account(ipc::Client& client, std::uint32_t from, std::uint32_t to, std::int64_t used_ps) {
  const Process& own = process();
  std::int64_t charged_ps = 0;
  if (own.mode == ComputeMode::profile) {
    charged_ps = cost_ps(from, to);
  } else {
    const std::int64_t spent_ps = std::max<std::int64_t>(used_ps - own.read_cost_ps, 0);
    if (own.mode == ComputeMode::record) record(client, from, to, spent_ps);
    __extension__ using Wide = __int128;
    charged_ps = static_cast<std::int64_t>(Wide{spent_ps} * client.header().compute_scale_ppm / 1'000'000);
  }
  if (charged_ps > 0) client.charge_compute(charged_ps);
}

// The thread has computed until now, in a run that charges nothing for it.
[[gnu::noinline]] void note_uncharged(std::uint64_t ticks) {
  const std::int64_t estimate_ps = own_thread.uncharged.end(ticks, cpu_time_ps);
  if (estimate_ps == 0) [[likely]]
    return;
  if (ipc::Client* client = simulated_client()) client->block().clock.uncharged_ps.add(estimate_ps);
}

// Charges what the thread has computed since its last call.
void charge_region(const void* caller, const char* function) {
  Thread& thread = own_thread;
  const bool reads = process().mode != ComputeMode::profile;
  const std::int64_t now_ps = reads ? cpu_time_ps() : 0;
  const std::uint32_t from = thread.since == Since::began ? CallSites::thread_start : thread.site;
  thread.site = site_of(caller, function);
  ipc::Client* client = virtual_client();
  // The computation of the first thread counts from the begin of virtual time, which is in a call.
  const bool counts = client != nullptr && thread.since != Since::in_host &&
                      (thread.since != Since::began || !is_main_thread());
  if (counts) account(*client, from, thread.site, now_ps - thread.left_ps);
  note_call();
}

// The first call of a process or thread, or one in a run that charges computation. Apart from
// enter_program_call(), as leave_charged_call(): runs that charge nothing go through those in a few
// instructions.
[[gnu::noinline]] bool enter_other_call(const void* caller, const char* function, Callee callee) {
  Thread& thread = own_thread;
  Observed observed = computation_observed.load(std::memory_order_relaxed);
  if (observed == Observed::unknown) observed = begin();
  if (observed == Observed::unknown || observed == Observed::no) return false;
  if (callee == Callee::time && thread.since == Since::began && !is_main_thread()) return false;
  thread.depth = 1;
  if (observed == Observed::charged) {
    charge_region(caller, function);
  } else if (thread.since == Since::left) {
    note_uncharged(cycle_ticks());
  }
  return true;
}

[[gnu::noinline]] void leave_charged_call() {
  Thread& thread = own_thread;
  ipc::Client* client = virtual_client();
  thread.since = client != nullptr ? Since::left : Since::in_host;
  if (client != nullptr && process().mode == ComputeMode::record && is_alone(*client))
    thread.probe_ns = time_probe_ns();
  if (process().mode != ComputeMode::profile) {
    thread.left_ps = cpu_time_ps();
  } else if (client != nullptr) {
    overlap_compute(*client);
  }
}

}  // namespace

constinit std::atomic<Observed> computation_observed{Observed::unknown};

bool enter_program_call(const void* caller, const char* function, Callee callee) {
  Thread& thread = own_thread;
  if (thread.depth > 0) {
    ++thread.depth;
    return true;
  }
  if (computation_observed.load(std::memory_order_relaxed) != Observed::uncharged ||
      thread.since == Since::began) [[unlikely]]
    return enter_other_call(caller, function, callee);
  thread.depth = 1;
  if (thread.since != Since::left) return true;
  const std::uint64_t ticks = cycle_ticks();
  if (thread.uncharged.counts(ticks)) [[unlikely]]
    note_uncharged(ticks);
  return true;
}

void leave_program_call() {
  Thread& thread = own_thread;
  if (--thread.depth > 0) return;
  if (computation_observed.load(std::memory_order_relaxed) != Observed::uncharged) [[unlikely]]
    return leave_charged_call();
  thread.since = simulated_client() != nullptr ? Since::left : Since::in_host;
  if (thread.since == Since::left) thread.uncharged.begin(cycle_ticks(), cpu_time_ps);
}

void report_computation(ipc::Client& client) {
  if (computation_observed.load() != Observed::charged) return;
  Process& own = process();
  const char* path = std::getenv(ipc::compute_report_variable);
  const std::lock_guard<std::mutex> guard(own.mutex);
  if (path == nullptr || own.is_reported) return;
  own.is_reported = true;
  const std::string lines = own.regions.report(client.rank(), own.mode == ComputeMode::record);
  const int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  // One call, so that the lines of several ranks do not mix.
  const bool is_written =
      file >= 0 && write(file, lines.data(), lines.size()) == static_cast<ssize_t>(lines.size());
  if (!is_written)
    std::fprintf(stderr, "apenet: this rank's computation was not reported: %s\n", std::strerror(errno));
  if (file >= 0) close(file);
}

namespace {

// For programs without MPI, whose end no call announces.
__attribute__((destructor)) void report_at_exit() {
  ipc::Client* client = rank_client();
  if (client != nullptr) report_computation(*client);
}

}  // namespace

// Called by libraries that the shim does not intercept (ipc/program_call.hpp).
APENET_EXPORT void apenet_program_call(int change, const void* caller) {
  static constexpr const char* function = "library";
  if (change < 0) {
    if (own_thread.depth > 0) leave_program_call();
  } else if (computation_observed.load(std::memory_order_relaxed) != Observed::no) {
    enter_program_call(caller, function, Callee::library);
  }
}

}  // namespace apenet::shim
