#include "runtime/scheduler/idle_alarms.hpp"

namespace apenet {
namespace {

constexpr std::int64_t ps_per_s = 1'000'000'000'000;

// The number of wakes, and the virtual time that they must have taken at least.
struct Limit {
  std::uint64_t wakes;
  std::int64_t ps;
};
constexpr Limit limits[] = {
    {8, 10 * 86'400 * ps_per_s},  // virtual time ends after 104 days
    {10'000, 30 * ps_per_s},
    {30'000, 0},
};

// Then even a long sleep of another thread is waited for no longer.
constexpr std::uint64_t most_wakes = 300'000;

}  // namespace

void IdleAlarms::reset() {
  if (is_empty_) return;
  rows_.assign(rows_.size(), Row{});
  is_empty_ = true;
}

void IdleAlarms::note(std::uint32_t rank, std::int64_t clock_ps) {
  is_empty_ = false;
  Row& row = rows_[rank];
  if (row.wakes++ == 0) row.since_ps = clock_ps;
  row.last_ps = clock_ps;
}

bool IdleAlarms::are_idle(std::uint32_t rank) const {
  const Row& row = rows_[rank];
  for (const Limit& limit : limits) {
    if (row.wakes >= limit.wakes && row.last_ps - row.since_ps >= limit.ps) return true;
  }
  return false;
}

bool IdleAlarms::have_all_woken(std::uint32_t rank, std::int64_t slept_since_ps) const {
  const Row& row = rows_[rank];
  return row.wakes >= most_wakes || (row.wakes > 0 && slept_since_ps >= row.since_ps);
}

}  // namespace apenet
