#include "runtime/shim/probe.hpp"

#include <algorithm>
#include <ctime>

#include "runtime/ipc/host_call.hpp"

namespace apenet::shim {
namespace {

std::int64_t cpu_time_ns() {
  timespec now{};
  ipc::host_call(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// Independent additions, more than a core executes at a time.
void fill_core(int rounds) {
  std::uint64_t a = 1;
  std::uint64_t b = 2;
  std::uint64_t c = 3;
  std::uint64_t d = 4;
  std::uint64_t e = 5;
  std::uint64_t f = 6;
  for (int i = 0; i < 2 * rounds; ++i) {
    a += 1;
    b += 1;
    c += 1;
    d += 1;
    e += 1;
    f += 1;
    // Nothing is known of the sums, so the compiler makes each of them.
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
  }
}

}  // namespace

std::int64_t time_probe_ns() {
  constexpr int repetitions = 3;
  constexpr int rounds = 1500;
  // The first repetition also waits for the core to wake up, for the code, and for the program's last writes.
  std::int64_t least_ns = INT64_MAX;
  std::int64_t before_ns = cpu_time_ns();
  for (int i = 0; i < repetitions; ++i) {
    fill_core(rounds);
    const std::int64_t now_ns = cpu_time_ns();
    least_ns = std::min(least_ns, now_ns - before_ns);
    before_ns = now_ns;
  }
  return least_ns;
}

}  // namespace apenet::shim
