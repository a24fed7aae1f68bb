#include "runtime/ipc/progress.hpp"

namespace apenet::ipc {
namespace {

// A call of which it is not known whether it waits is taken to wait when it has polled this often without
// finding or posting anything. MPI calls that only kick progress poll up to four times.
constexpr std::uint32_t polls_before_waiting = 16;

// A program may wait in a loop of its own, of calls that each only kick progress (a lock in a window). After
// so many of them in a row that brought nothing, they are taken to look: time then passes, and others get
// their turn.
constexpr std::uint32_t calls_before_looking = 64;

// After so many reads of the clock in a row, between which it did not move, the program is taken to read
// until a time has come: each then takes what it takes on most of the machines.
constexpr std::uint32_t reads_before_spinning = 64;
constexpr std::int64_t spinning_read_ps = 50'000;
constexpr std::uint32_t reads_of_a_leave = 1'000'000;  // the same while the library waits in the host

// When every process waits and the network is empty, each may poll this often before it waits again: what it
// waits for comes from elsewhere, and takes MPICH a poll a message (accumulates of a rank to itself).
constexpr std::uint32_t granted_polls = 1024;

// A few looks between long sleeps are no row of them.
constexpr std::uint32_t least_looks = 1000;

}  // namespace

Progress::Poll Progress::poll_in_vain() {
  const bool long_row = !leaves() && get(calls_in_vain_) > calls_before_looking;
  const bool waiting = waits();
  if (looks() || (!waiting && long_row)) return long_row ? Poll::looks_in_vain : Poll::looks;
  if (waiting) return Poll::waits;
  add(empty_polls_, 1);
  return get(empty_polls_) < polls_before_waiting ? Poll::kicks : Poll::waits;
}

bool Progress::looks_for_ever(const VainLimits& limits, std::int64_t clock_ps) const {
  const std::uint32_t looks = get(calls_in_vain_);
  if (looks < least_looks) return false;
  if (looks >= limits.looks && get(clock_reads_) == 0) return true;
  return clock_ps - limits.time_ps >= vain_since_ps_.load(std::memory_order_relaxed);
}

bool Progress::use_grant() {
  const std::uint32_t left = get(granted_);
  if (left > 0) set(granted_, left - 1);
  return left > 0;
}

std::int64_t Progress::read_cost_ps(std::int64_t clock_ps) {
  if (read_at_ps_.load(std::memory_order_relaxed) != clock_ps) set(reads_in_vain_, 0);
  add(reads_in_vain_, 1);
  const std::int64_t cost_ps =
      get(reads_in_vain_) > (leaves() ? reads_of_a_leave : reads_before_spinning) ? spinning_read_ps : 0;
  read_at_ps_.store(clock_ps + cost_ps, std::memory_order_relaxed);
  return cost_ps;
}

void Progress::grant() {
  set(granted_, granted_polls);
}

}  // namespace apenet::ipc
