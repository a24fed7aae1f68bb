#include "runtime/ipc/progress.hpp"

namespace apenet::ipc {
namespace {

// A call that is not known to wait counts as waiting after this many polls that found and posted nothing. MPI
// calls that only make progress poll up to four times.
constexpr std::uint32_t polls_before_waiting = 16;

constexpr std::int64_t spinning_read_ps = 50'000;  // what a read costs on most of the machines

// When every process waits and the network is empty, each may poll this often before it waits again. What it
// waits for comes from elsewhere, and MPICH needs one poll per message (accumulates of a rank to itself).
constexpr std::uint32_t granted_polls = 1024;

// Fewer empty polls than this between long sleeps do not count as polling without end.
constexpr std::uint32_t least_polls = 1000;

// Between sleeps, so much of the polls is enough, once they have taken so much of the time.
constexpr std::uint32_t fewer_with_sleeps = 10;
constexpr std::int64_t parts_with_sleeps = 60;

// In a row that counts as polling without end, one poll in this many reports to the simulator.
constexpr std::uint32_t polls_between_reports = 1024;

}  // namespace

CallProgress::Poll CallProgress::on_empty_poll(bool leaves) {
  const bool long_row = !leaves && get(empty_calls_) > calls_before_testing;
  const bool waiting = waits();
  if (is_testing() || (!waiting && long_row)) return long_row ? Poll::spins : Poll::tests;
  if (waiting) return Poll::waits;
  add(empty_polls_, 1);
  return get(empty_polls_) < polls_before_waiting ? Poll::progresses : Poll::waits;
}

bool CallProgress::polls_endlessly(const EmptyPollLimits& limits, std::int64_t clock_ps) const {
  const std::uint32_t polls = get(empty_calls_);
  if (polls < least_polls) return false;
  const std::int64_t since_ps = empty_since_ps_.load(std::memory_order_relaxed);
  // Does not overflow, whatever a rank has written.
  const auto has_taken = [&](std::int64_t ps) { return clock_ps - ps >= since_ps; };
  if (has_taken(limits.time_ps)) return true;
  if (get(clock_reads_) != 0) return false;
  const bool sleeps = has_taken(limits.time_ps / parts_with_sleeps);
  return polls >= (sleeps ? limits.polls / fewer_with_sleeps : limits.polls);
}

bool Progress::reports_polling(const EmptyPollLimits& limits, std::int64_t clock_ps) {
  if (!polls_endlessly(limits, clock_ps)) return false;
  const std::uint32_t before = get(endless_polls_);
  set(endless_polls_, before + 1);
  return before % polls_between_reports == 0;
}

bool Progress::use_grant() {
  const std::uint32_t left = get(granted_);
  if (left > 0) set(granted_, left - 1);
  return left > 0;
}

std::int64_t CallProgress::read_cost_ps(std::int64_t clock_ps, std::uint32_t most_free) {
  if (read_at_ps_.load(std::memory_order_relaxed) != clock_ps) set(repeated_reads_, 0);
  add(repeated_reads_, 1);
  const std::int64_t cost_ps = get(repeated_reads_) > most_free ? spinning_read_ps : 0;
  read_at_ps_.store(clock_ps + cost_ps, std::memory_order_relaxed);
  return cost_ps;
}

void CallProgress::swap(CallProgress& other) noexcept {
  const auto exchange = [](auto& one, auto& two) {
    one.store(two.exchange(one.load(std::memory_order_relaxed), std::memory_order_relaxed),
              std::memory_order_relaxed);
  };
  exchange(testing_, other.testing_);
  exchange(waiting_, other.waiting_);
  exchange(empty_calls_, other.empty_calls_);
  exchange(empty_polls_, other.empty_polls_);
  exchange(repeated_reads_, other.repeated_reads_);
  exchange(read_at_ps_, other.read_at_ps_);
  exchange(clock_reads_, other.clock_reads_);
  exchange(empty_since_ps_, other.empty_since_ps_);
}

void Progress::grant() {
  set(granted_, granted_polls);
  add(grants_, 1);
}

}  // namespace apenet::ipc
