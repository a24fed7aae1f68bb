#include "runtime/shim/fruitless_sleeps.hpp"

#include <algorithm>
#include <utility>

#include "runtime/ipc/client.hpp"
#include "runtime/shim/direct_calls.hpp"

namespace apenet::shim {

void FruitlessSleeps::note(const PossibleCheck& check) {
  if (watches()) now_.all[now_.count++] = check;
}

const PossibleCheck* FruitlessSleeps::repeated(std::uint64_t work) const {
  if (work != work_before_) return nullptr;
  const std::span before(before_.all.data(), before_.count);
  for (const PossibleCheck& check : std::span(now_.all.data(), now_.count)) {
    const auto is_same = [&check](const PossibleCheck& other) { return other.key == check.key; };
    if (std::any_of(before.begin(), before.end(), is_same)) return &check;
  }
  return nullptr;
}

void FruitlessSleeps::begin_sleep() {
  if (watches_) end_watch_of_calls();
}

void FruitlessSleeps::end_sleep(std::int64_t ps, std::uint64_t work, bool was_real) {
  const bool has_worked = std::exchange(work_before_, work) != work;
  const bool has_found = now_.count > 0;
  const bool found_nothing = watches_ && !has_found;
  owed_ps_ = was_real || found_nothing ? 0 : std::min(owed_ps_, ipc::end_of_time_ps - ps) + ps;
  if (has_worked) {
    owed_ps_ = was_real ? 0 : ps;
    interval_ps_ = least_interval_ps;
    unwatched_ps_ = 0;
  }
  if (found_nothing) {
    interval_ps_ = std::min(2 * interval_ps_, most_interval_ps);
    unwatched_ps_ = 0;
  }
  unwatched_ps_ = std::min(unwatched_ps_, most_interval_ps) + std::min(ps, most_interval_ps);
  before_ = now_;
  now_.count = 0;
  watches_ = !has_worked && (has_found || unwatched_ps_ >= interval_ps_);
  if (watches_) watch_calls();
}

}  // namespace apenet::shim
