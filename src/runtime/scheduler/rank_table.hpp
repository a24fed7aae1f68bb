// RankTable: the state of every rank. Launch and session read it; only the scheduler changes it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "kernel/time.hpp"
#include "runtime/ipc/protocol.hpp"
#include "runtime/scheduler/held_payloads.hpp"
#include "runtime/scheduler/rank_state.hpp"
#include "runtime/scheduler/shared_memory.hpp"

namespace apenet {

inline constexpr std::int64_t never_ps = Time::never().ps();
// Earlier than all virtual time.
inline constexpr std::int64_t before_time_ps = -1;

// An event that waits for room in the ring.
struct OverflowEvent {
  ipc::Event event;
  HeldPayload payload;
};

// The scheduler's compact copy of what it knows of a rank. The blocks themselves lie pages apart.
struct Rank {
  RankState state = RankState::running;
  std::int64_t clock_ps = 0;
  std::int64_t deadline_ps = never_ps;  // awaiting_event: never if it has none
  std::int64_t first_event_ps = 0;      // requires events > 0
  // awaiting_event: of the event because of which it acts; never as long as it sleeps on, see ipc::Grant.
  std::int64_t acts_on_ps = never_ps;
  std::uint32_t least_events = 1;
  std::int64_t woken_ps = before_time_ps;
  std::int64_t horizon_ps = 0;  // as the process knows it
  bool shares_memory = false;   // with other ranks of its node
  std::uint32_t events = 0;     // in the ring
  std::deque<OverflowEvent> overflow;
  // Messages taken and not released, per rail; see message::keeps_places().
  std::array<std::uint32_t, ipc::most_rails> kept{};

  [[nodiscard]] bool waits_for_time() const {
    return state == RankState::awaiting_time || state == RankState::polling;
  }
  [[nodiscard]] bool computes() const {
    return state == RankState::computing || state == RankState::computing_ended;
  }
  // As Client::lower_horizon() does: the rank has acted, and does not know what happens from this time on. A
  // flush gives the process this horizon back.
  void lower_horizon(std::int64_t effect_ps) { horizon_ps = std::min(horizon_ps, effect_ps); }
  // Another of its threads sleeps until deadline_ps.
  [[nodiscard]] bool has_alarm() const {
    return state == RankState::awaiting_event && deadline_ps != never_ps;
  }
};

class RankTable {
 public:
  RankTable(SharedMemory& shared, std::uint32_t count) : shared_(shared), ranks_(count), alive_(count) {}

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(ranks_.size()); }
  [[nodiscard]] const Rank& operator[](std::uint32_t rank) const { return ranks_[rank]; }
  // What the rank does now: for a running rank, what its process has written since. Not checked.
  [[nodiscard]] RankState state_now(std::uint32_t rank) const;
  // The rank has the grant, and its process has not begun to wait. The rest of what it has written may be
  // invalid.
  [[nodiscard]] bool has_grant(std::uint32_t rank) const;
  // The rank may have printed something since the last step.
  [[nodiscard]] bool may_print(std::uint32_t rank) const;
  // The rank computes on the host while others go on.
  [[nodiscard]] bool is_overlapped(std::uint32_t rank) const {
    return shared_.block(rank).grant.run.load() == ipc::Run::overlapped;
  }
  // If the rank is in overlapped compute and has not been granted since: until when, at least. Also if its
  // process has ended meanwhile: the others go on up to that time in any case.
  [[nodiscard]] std::optional<std::int64_t> computes_until_ps(std::uint32_t rank) const;
  // What the process waits for outside the simulation; it may have written anything.
  [[nodiscard]] const ipc::OutsideNote& outside(std::uint32_t rank) const {
    return shared_.block(rank).outside;
  }
  // What its own system calls got past the shim; likewise.
  [[nodiscard]] const ipc::DirectNote& direct(std::uint32_t rank) const { return shared_.block(rank).direct; }
  // How many MPI calls the rank has made.
  [[nodiscard]] std::uint32_t calls(std::uint32_t rank) const { return shared_.block(rank).progress.calls(); }
  // It is in MPI_Finalize, where the library may wait for its process manager.
  [[nodiscard]] bool is_leaving(std::uint32_t rank) const { return shared_.block(rank).progress.leaves(); }
  // One of its threads is in an MPI call.
  [[nodiscard]] bool is_in_call(std::uint32_t rank) const;
  [[nodiscard]] bool is_suspended(std::uint32_t rank) const {
    return ranks_[rank].state == RankState::suspended &&
           shared_.block(rank).grant.run.load() == ipc::Run::suspended;
  }
  // The ranks that are suspended and have not come back.
  [[nodiscard]] std::vector<std::uint32_t> suspended() const;
  // No other rank is left that could continue.
  [[nodiscard]] bool all_are_suspended() const;
  // The ranks that run while at least one other waits for the model; empty if none waits.
  [[nodiscard]] std::vector<std::uint32_t> waited_for() const;
  // The virtual time at which the rank last resumed after a wait, or before_time_ps if never. A process
  // prints nothing between the events that it has waited for together.
  [[nodiscard]] std::int64_t resumed_ps(std::uint32_t rank) const;
  // The rank's clock now, or before_time_ps before virtual time.
  [[nodiscard]] std::int64_t clock_ps(std::uint32_t rank) const;

  [[nodiscard]] bool started() const { return started_; }
  // The clock value at which virtual time began.
  [[nodiscard]] std::int64_t epoch_ps() const { return epoch_ps_; }
  [[nodiscard]] std::uint32_t alive() const { return alive_; }
  // Changes whenever a rank does anything: posts, receives, calls MPI, advances its clock. Two equal readings
  // around an idle release mean that no rank acted. What a polling rank does is no progress.
  [[nodiscard]] std::uint64_t activity() const;

  // For the scheduler's parts. Throws std::logic_error if the table of transitions does not list it.
  void apply(std::uint32_t rank, RankInput input);
  // The same for a report of the rank's process. Throws RankError.
  void apply_report(std::uint32_t rank, RankInput report);
  [[nodiscard]] Rank& at(std::uint32_t rank) { return ranks_[rank]; }
  void begin(std::int64_t epoch_ps);
  void note_activity() { ++activity_; }
  // Any activity of the model or a rank except polling.
  [[nodiscard]] std::uint64_t noted_activity() const { return activity_; }

 private:
  void enter(std::uint32_t rank, RankState state);

  SharedMemory& shared_;
  std::vector<Rank> ranks_;
  std::uint32_t alive_;
  std::uint64_t activity_ = 0;
  std::int64_t epoch_ps_ = 0;
  bool started_ = false;
};

}  // namespace apenet
