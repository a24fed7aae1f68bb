#include "runtime/launch/core_rotation.hpp"

#include <random>

#include "runtime/launch/host_thread.hpp"

namespace apenet {
namespace {

using namespace std::chrono_literals;

constexpr auto time_on_core = 500ms;
constexpr auto time_to_warm = 100ms;  // the first part of it, while the caches fill

// Differs from run to run, so that each recording of a program sees other parts of each rank alone.
std::uint32_t any_of(std::uint32_t ranks) {
  return static_cast<std::uint32_t>(std::random_device()() % ranks);
}

void move(int process_id, const cpu_set_t& to) {
  if (process_id == 0) return;
  for (const int thread : threads_of(process_id)) sched_setaffinity(thread, sizeof to, &to);
}

}  // namespace

CoreRotation::CoreRotation() {
  sched_getaffinity(0, sizeof allowed_, &allowed_);
}

// Takes a core that no other run has claimed, or else any other than that of the run.
void CoreRotation::choose_core() {
  has_chosen_ = true;
  if (sched_getaffinity(0, sizeof others_, &others_) != 0 || CPU_COUNT(&others_) != 1) return;
  std::optional<std::size_t> any;
  for (std::size_t core = 0; core < CPU_SETSIZE && !claim_; ++core) {
    if (!CPU_ISSET(core, &allowed_) || CPU_ISSET(core, &others_)) continue;
    if (!any) any = core;
    claim_ = CoreClaim::take(core);
  }
  if (!any) return;
  core_.emplace();
  CPU_ZERO(&*core_);
  CPU_SET(claim_ ? claim_->core() : *any, &*core_);
}

void CoreRotation::move_in(SharedMemory& shared, const std::vector<int>& process_ids, std::uint32_t rank) {
  if (rank_ == rank) return;
  if (rank_) {
    shared.block(*rank_).grant.core = ipc::Core::shared;
    move(process_ids[*rank_], others_);
  }
  move(process_ids[rank], *core_);
  shared.block(rank).grant.core = ipc::Core::own_and_cold;
  rank_ = rank;
  warm_from_ = WallClock::now() + time_to_warm;
}

void CoreRotation::rotate(SharedMemory& shared, const std::vector<int>& process_ids) {
  if (!has_chosen_) choose_core();
  if (!core_) return;
  const auto now = WallClock::now();
  if (!rank_ || now >= until_) {
    const auto ranks = static_cast<std::uint32_t>(process_ids.size());
    move_in(shared, process_ids, rank_ ? (*rank_ + 1) % ranks : any_of(ranks));
    until_ = now + time_on_core;
  }
  if (now >= warm_from_) shared.block(*rank_).grant.core = ipc::Core::own_and_warm;
}

}  // namespace apenet
