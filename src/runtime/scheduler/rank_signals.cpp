#include "runtime/scheduler/rank_signals.hpp"

#include <algorithm>
#include <csignal>

#include "runtime/scheduler/request_validation.hpp"

namespace apenet {

RankSignals::RankSignals(SharedMemory& shared, const Simulation& simulation, RankTable& ranks,
                         const LowerBounds& bounds, ProcessIds& process_ids)
    : shared_(shared),
      simulation_(simulation),
      ranks_(ranks),
      bounds_(bounds),
      process_ids_(process_ids),
      heads_(ranks.size()) {}

void RankSignals::send(const ipc::Request& request) {
  const std::uint32_t rank = request.target;
  const auto number = static_cast<int>(request.immediate);
  switch (ranks_[rank].state) {
    case RankState::suspended:
    case RankState::finished:
      if (const std::uint32_t process = process_ids_.running(rank); process != 0)
        ::kill(static_cast<pid_t>(process), number);
      return;
    case RankState::ended:
    case RankState::computing_ended:
      return;
    default:
      break;
  }
  ipc::Block& block = shared_.block(rank);
  const std::int64_t time_ps = std::max(request.time_ps + bounds_.lookahead_ps(), simulation_.now().ps());
  std::uint32_t& head = heads_[rank];
  const std::uint32_t untaken = head - block.signals.tail.load();
  if (untaken > ipc::signal_ring)
    validation::refuse(rank, "ring", "signals.tail", head - untaken, "one of the signals that were sent");
  if (untaken == ipc::signal_ring) return;
  block.signals.signals[head % ipc::signal_ring] = {
      .time_ps = time_ps,
      .number = number,
      .code = static_cast<std::int32_t>(request.local_address),
      .process = static_cast<std::int32_t>(request.remote_address),
      .user = static_cast<std::uint32_t>(request.remote_address >> 32U),
      .value = request.key};
  block.signals.head.store(++head);
  if (time_ps < block.timer_due_ps.load()) block.timer_due_ps.store(time_ps);
  if (!block.clock.held()) end_wait(rank, time_ps);
}

void RankSignals::end_wait(std::uint32_t rank, std::int64_t when_ps) {
  Rank& known = ranks_.at(rank);
  if (!known.waits_for_time() && known.state != RankState::awaiting_event) return;
  when_ps = std::max(when_ps, known.clock_ps);
  if (when_ps >= known.deadline_ps) return;
  known.deadline_ps = when_ps;
  shared_.block(rank).grant.deadline_ps = when_ps;
}

void RankSignals::end_interrupted(std::int64_t passed_ps) {
  shared_.running().interrupted.store(0);
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const bool is_interrupted = shared_.block(rank).grant.interrupted.exchange(0) != 0;
    if (is_interrupted && ranks_[rank].state == RankState::awaiting_time) end_wait(rank, passed_ps);
  }
}

}  // namespace apenet
