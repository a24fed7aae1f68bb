#include "runtime/scheduler/rank_reports.hpp"

#include <span>
#include <utility>

#include "runtime/scheduler/deadlock_report.hpp"
#include "runtime/scheduler/rank_snapshot.hpp"

namespace apenet {
namespace {

RankSnapshot::State reported_state(RankState state) {
  switch (state) {
    case RankState::finished:
      return RankSnapshot::State::finished;
    case RankState::starting:
      return RankSnapshot::State::starts;
    case RankState::polling:
      return RankSnapshot::State::polls;
    case RankState::suspended:
    case RankState::running:
    case RankState::queued:
    case RankState::ended:
      return RankSnapshot::State::suspended;
    default:
      return RankSnapshot::State::waits;
  }
}

}  // namespace

std::string describe_waiting(const RankTable& ranks, const Delivery& delivery, SharedMemory& shared,
                             ProcessMemory& memory, const PlaceOfCall& place_of) {
  std::vector<RankSnapshot> all;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    const auto read = [&memory, rank](std::uint64_t address, std::span<std::byte> to) {
      return memory.read(rank, address, to);
    };
    RankSnapshot snapshot = read_snapshot(shared.notes(rank), shared.block(rank).note, ranks.size(), read);
    snapshot.state = reported_state(ranks[rank].state);
    if (snapshot.state != RankSnapshot::State::finished) {
      snapshot.socket_waits = delivery.socket_waits(rank);
      for (CallSnapshot& call : snapshot.calls)
        call.place = call.caller == 0 ? "" : place_of(rank, call.caller, call.frame);
      all.push_back(std::move(snapshot));
      continue;
    }
    // A finished rank may still be a member of an object that others wait on.
    RankSnapshot left;
    left.state = snapshot.state;
    left.objects = std::move(snapshot.objects);
    left.provider.left_sends = snapshot.provider.left_sends;
    left.left_send = std::move(snapshot.left_send);
    all.push_back(std::move(left));
  }
  return deadlock_report(all);
}

std::vector<std::string> describe_left_behind(SharedMemory& shared, const UnreceivedMessages& untaken,
                                              const LineOfCode& line_of) {
  std::vector<RankSnapshot> all;
  const std::uint32_t count = shared.header().process_count;
  const auto read = [](std::uint64_t, std::span<std::byte>) { return false; };  // the process has ended
  for (std::uint32_t rank = 0; rank < count; ++rank)
    all.push_back(read_snapshot(shared.notes(rank), shared.block(rank).note, count, read));
  return left_behind(all, untaken, line_of);
}

}  // namespace apenet
