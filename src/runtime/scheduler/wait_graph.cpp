#include "runtime/scheduler/wait_graph.hpp"

#include <algorithm>
#include <iterator>

#include "runtime/ipc/program_tags.hpp"

namespace apenet {
namespace {

using ipc::CallKind;
// Whether a request is the oldest unfinished receive or send of the provider. A synchronous send waits for an
// acknowledgement, which the provider sees as a receive.
bool is_oldest(const ipc::WaitNote& note, const std::vector<RankSnapshot>& ranks, std::uint32_t rank,
               const OperationSnapshot& request) {
  if (request.kind != CallKind::receive && request.kind != CallKind::send) return false;
  const bool receives = request.kind == CallKind::receive;
  const std::optional<std::int32_t> peer = receives ? request.source : request.target;
  const std::optional<std::int32_t> tag = receives ? request.tag : request.target_tag;
  std::int64_t world_rank = -1;  // any
  if (peer) {
    const auto known = peer_of(ranks, rank, request.object, *peer);
    if (!known) return false;
    world_rank = *known;
  }
  if (!receives && note.sends > 0 && world_rank == note.send_target) return true;
  if (note.receives == 0) return false;
  const bool same_peer = note.receive_source < 0 || world_rank < 0 || world_rank == note.receive_source;
  return same_peer && (!tag || static_cast<std::uint64_t>(*tag) == ipc::program_tag(note.receive_tag));
}

}  // namespace

std::optional<std::uint32_t> peer_of(const std::vector<RankSnapshot>& ranks, std::uint32_t rank,
                                     const ObjectSnapshot& object, std::int32_t peer) {
  if (peer < 0 || static_cast<std::size_t>(peer) >= ranks.size() || object.is_inter) return std::nullopt;
  if (object.kind == ObjectKind::world) return static_cast<std::uint32_t>(peer);
  if (object.kind == ObjectKind::self) return rank;
  if (object.kind == ObjectKind::unknown) return std::nullopt;
  for (std::uint32_t other = 0; other < ranks.size(); ++other) {
    for (const ObjectSnapshot& known : ranks[other].objects) {
      if (known.is(object) && known.rank == peer) return other;
    }
  }
  return std::nullopt;
}

std::vector<std::uint32_t> members_of(const std::vector<RankSnapshot>& ranks, std::uint32_t rank,
                                      const ObjectSnapshot& object) {
  if (object.kind == ObjectKind::self) return {rank};
  std::vector<std::uint32_t> members;
  if (object.kind == ObjectKind::unknown || object.is_inter) return members;
  for (std::uint32_t other = 0; other < ranks.size(); ++other) {
    const std::vector<ObjectSnapshot>& known = ranks[other].objects;
    const auto is_this = [&object](const ObjectSnapshot& snapshot) { return snapshot.is(object); };
    if (object.kind == ObjectKind::world || std::any_of(known.begin(), known.end(), is_this))
      members.push_back(other);
  }
  return members;
}

std::vector<OperationSnapshot> unfinished(const std::vector<RankSnapshot>& ranks, std::uint32_t rank,
                                          const CallSnapshot& call) {
  std::vector<OperationSnapshot> found;
  for (const OperationSnapshot& request : call.requests) {
    if (is_oldest(ranks[rank].provider, ranks, rank, request)) found.push_back(request);
  }
  return found.empty() ? call.requests : found;
}

namespace {

bool is_meeting(const OperationSnapshot& operation) {
  const bool meets = operation.kind == CallKind::collective ||
                     operation.kind == CallKind::window_collective ||
                     operation.kind == CallKind::file_collective;
  return meets && operation.object.kind != ObjectKind::unknown && operation.object.kind != ObjectKind::self;
}

void enter(std::vector<Meeting>& meetings, std::uint32_t rank, const OperationSnapshot& operation) {
  if (!is_meeting(operation)) return;
  for (Meeting& meeting : meetings) {
    if (meeting.operation.call != operation.call || !meeting.operation.object.is(operation.object)) continue;
    if (meeting.inside.back() != rank) meeting.inside.push_back(rank);
    return;
  }
  meetings.push_back({operation, {rank}, {}});
}

}  // namespace

std::vector<Meeting> meetings_of(const std::vector<RankSnapshot>& ranks) {
  std::vector<Meeting> meetings;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].state == RankSnapshot::State::finished) continue;
    for (const CallSnapshot& call : ranks[rank].calls) {
      enter(meetings, rank, call.operation);
      for (const OperationSnapshot& request : call.requests) enter(meetings, rank, request);
    }
  }
  for (Meeting& meeting : meetings) {
    const auto members = members_of(ranks, meeting.inside.front(), meeting.operation.object);
    if (members.empty()) meeting.inside.clear();
    std::set_difference(members.begin(), members.end(), meeting.inside.begin(), meeting.inside.end(),
                        std::back_inserter(meeting.outside));
  }
  return meetings;
}

WaitGraph::WaitGraph(const std::vector<RankSnapshot>& ranks)
    : ranks_(ranks), meetings_(meetings_of(ranks)), edges_(ranks.size()) {
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    // If several threads of a rank wait, one of them does not determine whether the rank can continue.
    if (ranks[rank].state != RankSnapshot::State::finished && ranks[rank].calls.size() == 1) {
      add(rank, ranks[rank].calls.front());
    }
  }
  add_missing();
}

// One missing rank is sufficient for an edge. A rank that waits for any of several requests has no certain
// edge.
void WaitGraph::add_missing() {
  for (const Meeting& meeting : meetings_) {
    if (meeting.outside.empty()) continue;
    for (const std::uint32_t rank : meeting.inside) {
      const std::vector<CallSnapshot>& calls = ranks_[rank].calls;
      if (calls.size() > 1 || calls.front().operation.kind == CallKind::wait_any) continue;
      edges_[rank].push_back({meeting.outside.front(), meeting.operation});
    }
  }
}

void WaitGraph::add(std::uint32_t rank, const CallSnapshot& call) {
  const ipc::WaitNote& note = ranks_[rank].provider;
  // A synchronous send waits for an acknowledgement, which the provider sees as a receive.
  const bool is_known = note.sends > 0 || note.receives > 0;
  switch (call.operation.kind) {
    case CallKind::send:
      add(rank, call.operation, true, false);
      return;
    case CallKind::receive:
      add(rank, call.operation, false, true);
      return;
    case CallKind::exchange:
      add(rank, call.operation, !is_known || note.sends > 0, !is_known || note.receives > 0);
      return;
    case CallKind::window:
      add_lock_holders(rank, call.operation);
      return;
    case CallKind::wait_one:
    case CallKind::wait_all:
      // Each request blocks the rank, if it is known to be unfinished.
      if (const auto left = unfinished(ranks_, rank, call);
          left.size() == 1 || left.size() < call.requests.size()) {
        for (const OperationSnapshot& operation : left) {
          add(rank, operation, operation.kind != CallKind::receive, operation.kind != CallKind::send);
        }
      }
      return;
    default:
      return;
  }
}

void WaitGraph::add(std::uint32_t rank, const OperationSnapshot& operation, bool sends, bool receives) {
  const bool has_target = operation.kind == CallKind::send || operation.kind == CallKind::exchange;
  const bool has_source = operation.kind == CallKind::receive || operation.kind == CallKind::exchange;
  if (has_target && sends) {
    if (const auto to = peer_of(ranks_, rank, operation.object, operation.target)) {
      edges_[rank].push_back({*to, operation});
    }
  }
  if (has_source && receives && operation.source) {
    if (const auto to = peer_of(ranks_, rank, operation.object, *operation.source)) {
      edges_[rank].push_back({*to, operation});
    }
  }
}

void WaitGraph::add_lock_holders(std::uint32_t rank, const OperationSnapshot& operation) {
  if (operation.object.kind != ObjectKind::made) return;
  for (std::uint32_t other = 0; other < ranks_.size(); ++other) {
    for (const LockSnapshot& lock : ranks_[other].locks) {
      const bool is_same = lock.window.is(operation.object) &&
                           (lock.target == operation.target || lock.target == ipc::all_targets ||
                            operation.target == ipc::all_targets);
      if (is_same && other != rank) {
        edges_[rank].push_back({other, operation});
        break;
      }
    }
  }
}

// Follows from each rank its first edge that leads to a rank not yet done.
std::vector<std::vector<std::uint32_t>> WaitGraph::cycles() const {
  enum class Mark : std::uint8_t { fresh, under_way, done };
  std::vector<Mark> marks(edges_.size(), Mark::fresh);
  std::vector<std::vector<std::uint32_t>> found;
  for (std::uint32_t start = 0; start < edges_.size(); ++start) {
    std::vector<std::pair<std::uint32_t, std::size_t>> path;  // rank, and index of its next edge
    if (marks[start] == Mark::fresh) path.emplace_back(start, 0);
    while (!path.empty()) {
      auto& [rank, next] = path.back();
      marks[rank] = Mark::under_way;
      if (next == edges_[rank].size()) {
        marks[rank] = Mark::done;
        path.pop_back();
        continue;
      }
      const std::uint32_t to = edges_[rank][next++].to;
      if (to == rank || marks[to] == Mark::done) continue;
      if (marks[to] == Mark::fresh) {
        path.emplace_back(to, 0);
        continue;
      }
      std::vector<std::uint32_t> cycle;
      const auto begin =
          std::find_if(path.begin(), path.end(), [to](const auto& at) { return at.first == to; });
      for (auto at = begin; at != path.end(); ++at) cycle.push_back(at->first);
      std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
      const bool is_of_calls = std::any_of(begin, path.end(), [this](const auto& at) {
        return !is_meeting(edges_[at.first][at.second - 1].because);
      });
      if (is_of_calls) found.push_back(std::move(cycle));
      // Report only one of the cycles that share a rank.
      for (const auto& [on_path, edge] : path) marks[on_path] = Mark::done;
      path.clear();
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace apenet
