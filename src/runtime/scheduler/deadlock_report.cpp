#include "runtime/scheduler/deadlock_report.hpp"

#include <algorithm>
#include <set>

#include "runtime/ipc/program_tags.hpp"
#include "runtime/scheduler/rank_names.hpp"
#include "runtime/scheduler/wait_graph.hpp"

namespace apenet {
namespace {

using ipc::CallKind;
using ipc::MpiCall;
using State = RankSnapshot::State;

constexpr std::size_t most_named = 4;      // requests listed for one call
constexpr std::size_t most_in_cycle = 16;  // ranks listed for one cycle

std::string number(std::int64_t value) {
  return std::to_string(value);
}

class Report {
 public:
  explicit Report(const std::vector<RankSnapshot>& ranks) : ranks_(ranks), graph_(ranks) {}

  [[nodiscard]] std::string text() const;

 private:
  using Members = std::vector<std::uint32_t>;

  [[nodiscard]] std::string rank_text(std::uint32_t rank) const;
  [[nodiscard]] std::string provider_text(std::uint32_t rank) const;
  [[nodiscard]] std::string finished_text(std::uint32_t rank) const;
  [[nodiscard]] std::string pending_text(std::uint32_t rank, const OperationSnapshot& oldest,
                                         std::uint32_t count) const;
  [[nodiscard]] std::string call_text(std::uint32_t rank, const CallSnapshot& call) const;
  [[nodiscard]] std::string operation_text(std::uint32_t rank, const OperationSnapshot& operation) const;
  [[nodiscard]] std::string peer_text(std::uint32_t rank, const ObjectSnapshot& object,
                                      std::int32_t peer) const;
  [[nodiscard]] std::string object_text(const ObjectSnapshot& object) const;
  [[nodiscard]] std::string whole_object_text(std::uint32_t rank, const ObjectSnapshot& object) const;
  [[nodiscard]] std::string standing() const;
  [[nodiscard]] std::string waits_for_nobody() const;
  [[nodiscard]] std::string cycles() const;
  [[nodiscard]] std::string missing() const;
  [[nodiscard]] std::string different_collectives(const ObjectSnapshot& object) const;

  const std::vector<RankSnapshot>& ranks_;
  WaitGraph graph_;
};

std::string Report::object_text(const ObjectSnapshot& object) const {
  if (object.kind == ObjectKind::world) return "MPI_COMM_WORLD";
  if (object.kind == ObjectKind::self) return "MPI_COMM_SELF";
  const std::string what = object.type == ipc::ObjectType::window ? "window"
                           : object.type == ipc::ObjectType::file ? "file"
                                                                  : "communicator";
  if (object.kind == ObjectKind::unknown) return "a " + what;
  if (!object.name.empty()) return what + " '" + object.name + "'";
  return "a " + what + " of " + std::string(name_of(object.maker));
}

std::string Report::whole_object_text(std::uint32_t rank, const ObjectSnapshot& object) const {
  const Members members = members_of(ranks_, rank, object);
  if (object.kind == ObjectKind::world)
    return object_text(object) + " (" + number(static_cast<std::int64_t>(members.size())) + " ranks)";
  return object_text(object) + (members.empty() ? "" : " (" + name_ranks(members) + ")");
}

std::string Report::peer_text(std::uint32_t rank, const ObjectSnapshot& object, std::int32_t peer) const {
  const auto of_run = peer_of(ranks_, rank, object, peer);
  if (of_run && object.kind != ObjectKind::made) return "rank " + number(*of_run);
  const std::string local =
      "rank " + number(peer) + " of " + (object.is_inter ? "the other group of " : "") + object_text(object);
  return of_run && *of_run != static_cast<std::uint32_t>(peer)
             ? "rank " + number(*of_run) + " (" + local + ")"
             : local;
}

std::string Report::operation_text(std::uint32_t rank, const OperationSnapshot& operation) const {
  const ObjectSnapshot& object = operation.object;
  std::string name(name_of(operation.call));
  const auto to = [&] {
    return " to " + peer_text(rank, object, operation.target) + ", tag " + number(operation.target_tag);
  };
  const auto from = [&] {
    const std::string nowhere = object.kind == ObjectKind::made ? " of " + object_text(object) : "";
    return " from " + (operation.source ? peer_text(rank, object, *operation.source) : "any rank" + nowhere) +
           (operation.tag ? ", tag " + number(*operation.tag) : ", any tag");
  };
  switch (operation.kind) {
    case CallKind::send:
      return name + to();
    case CallKind::receive:
      return name + from();
    case CallKind::exchange:
      return name + to() + ", and" + from();
    case CallKind::collective:
      return operation.call == MpiCall::MPI_Finalize ? name : name + " on " + whole_object_text(rank, object);
    case CallKind::window:
      return name + " of " +
             (operation.target == ipc::all_targets ? "all ranks"
                                                   : peer_text(rank, object, operation.target)) +
             (object.kind == ObjectKind::made && operation.target != ipc::all_targets
                  ? ""
                  : " in " + object_text(object));
    case CallKind::window_collective:
    case CallKind::window_epoch:
    case CallKind::file_collective:
      return name + " on " + whole_object_text(rank, object);
    default:
      return name;
  }
}

std::string Report::call_text(std::uint32_t rank, const CallSnapshot& call) const {
  const CallKind kind = call.operation.kind;
  std::string name = operation_text(rank, call.operation);
  const std::string several = " of " + number(static_cast<std::int64_t>(call.request_count)) + " requests";
  if (kind == CallKind::wait_one) {
    return name + (call.requests.empty() ? "" : " for " + operation_text(rank, call.requests.front()));
  }
  if (kind != CallKind::wait_all && kind != CallKind::wait_any) return name;
  const std::vector<OperationSnapshot> left = unfinished(ranks_, rank, call);
  if (left.empty()) return name + several;
  std::string text = name + several + (left.size() < call.requests.size() ? ", unfinished " : ", ");
  for (std::size_t i = 0; i < left.size() && i < most_named; ++i)
    text += (i > 0 ? "; " : "") + operation_text(rank, left[i]);
  return left.size() > most_named ? text + "; and others" : text;
}

// If the program calls MPI without passing through the shim, the provider still knows what the rank waits
// for.
std::string Report::provider_text(std::uint32_t rank) const {
  const ipc::WaitNote& note = ranks_[rank].provider;
  std::string text;
  for (const std::string& wait : ranks_[rank].socket_waits)
    text += (text.empty() ? "" : "; another thread: ") + wait;
  if (!text.empty()) return text;
  if (note.call[0] != '\0') return std::string("waits in ") + note.call;
  if (note.receives > 0) {
    text = "waits for a message from " +
           (note.receive_source < 0 ? "any rank" : "rank " + number(note.receive_source)) + ", tag " +
           number(static_cast<std::int64_t>(ipc::program_tag(note.receive_tag)));
    if (note.receives > 1) text += " (and " + number(note.receives - 1) + " more receives)";
  }
  if (note.sends > 0) {
    text += (text.empty() ? "" : "; ") + number(note.sends) + " unfinished send(s), the oldest to rank " +
            number(note.send_target);
  }
  return text.empty() ? "waits for something that no posted operation explains" : text;
}

std::string Report::finished_text(std::uint32_t rank) const {
  const RankSnapshot& snapshot = ranks_[rank];
  if (!snapshot.left_send) return "finished";
  return "finished" + pending_text(rank, *snapshot.left_send, snapshot.provider.left_sends);
}

std::string Report::pending_text(std::uint32_t rank, const OperationSnapshot& oldest,
                                 std::uint32_t count) const {
  std::string text = operation_text(rank, oldest);
  if (oldest.call == MpiCall::none) text = "a send" + text.substr(name_of(MpiCall::none).size());
  return " with " + text + " pending" + (count > 1 ? " (and " + number(count - 1) + " more sends)" : "");
}

std::string Report::rank_text(std::uint32_t rank) const {
  const RankSnapshot& snapshot = ranks_[rank];
  if (snapshot.state == State::finished) return finished_text(rank);
  if (snapshot.state == State::starts) return "waits for the others in MPI_Init";
  if (snapshot.calls.empty()) return snapshot.state == State::suspended ? "" : provider_text(rank);
  std::string text;
  for (const CallSnapshot& call : snapshot.calls) {
    text += (text.empty() ? "" : "; another thread: ") + call_text(rank, call);
    if (call.operation.call == MpiCall::MPI_Finalize && snapshot.pending_send)
      text += pending_text(rank, *snapshot.pending_send, snapshot.provider.sends);
    if (!call.place.empty()) text += " (" + call.place + ")";
  }
  return text + (snapshot.state == State::polls ? ", again and again" : "");
}

// Merges equal texts; each stands at the position of its first rank. What a rank waits for outside MPI is not
// known here.
std::string Report::standing() const {
  std::vector<std::pair<std::string, Members>> lines;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    std::string text = rank_text(rank);
    if (text.empty()) continue;
    const auto same =
        std::find_if(lines.begin(), lines.end(), [&text](const auto& line) { return line.first == text; });
    if (same == lines.end()) {
      lines.emplace_back(std::move(text), Members{rank});
    } else {
      same->second.push_back(rank);
    }
  }
  std::string all;
  for (const auto& [text, members] : lines) all += "  " + name_ranks(members) + ": " + text + "\n";
  return all;
}

std::string Report::waits_for_nobody() const {
  std::string text;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    for (const WaitEdge& edge : graph_.edges(rank)) {
      const std::string name(name_of(edge.because.call));
      if (edge.to == rank) {
        text += "  rank " + number(rank) + " waits for itself, in " + name + "\n";
      } else if (ranks_[edge.to].state == State::finished) {
        text += "  rank " + number(rank) + " waits for rank " + number(edge.to) + ", which has " +
                finished_text(edge.to) + "\n";
      }
    }
  }
  return text;
}

std::string Report::cycles() const {
  const auto found = graph_.cycles();
  if (found.empty()) return {};
  const Members& first = found.front();
  std::string text = "  in a cycle: ";
  std::set<std::string> calls;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const std::uint32_t next = first[(i + 1) % first.size()];
    for (const WaitEdge& edge : graph_.edges(first[i])) {
      if (edge.to == next) calls.emplace(name_of(edge.because.call));
    }
    if (i < most_in_cycle) text += "rank " + number(first[i]) + " -> ";
    if (i == most_in_cycle) text += number(static_cast<std::int64_t>(first.size() - i)) + " more -> ";
  }
  text += "rank " + number(first.front()) + ", each waits for the next";
  if (calls.size() == 1) text += " in " + *calls.begin();
  if (found.size() > 1)
    text += " (and " + number(static_cast<std::int64_t>(found.size() - 1)) + " more cycles)";
  return text + "\n";
}

// Different collectives on the same communicator are one line: the ranks wait for each other in the wrong
// ones.
std::string Report::missing() const {
  const auto are = [](const Members& members) { return members.size() == 1 ? " is" : " are"; };
  const std::vector<Meeting>& meetings = graph_.meetings();
  std::string text;
  for (std::size_t i = 0; i < meetings.size(); ++i) {
    const auto& [operation, inside, outside] = meetings[i];
    const auto is_of_this = [&](const Meeting& meeting) {
      return !meeting.inside.empty() && meeting.operation.object.is(operation.object);
    };
    if (inside.empty() ||
        std::any_of(meetings.begin(), meetings.begin() + static_cast<std::ptrdiff_t>(i), is_of_this))
      continue;
    if (std::count_if(meetings.begin(), meetings.end(), is_of_this) > 1) {
      text += different_collectives(operation.object);
      continue;
    }
    // Those that have passed it do not miss.
    const auto has_finished = [this](std::uint32_t rank) { return ranks_[rank].state == State::finished; };
    if (operation.call == MpiCall::MPI_Finalize && !outside.empty() &&
        std::all_of(outside.begin(), outside.end(), has_finished))
      continue;
    text += "  " + std::string(name_of(operation.call)) + " on " + object_text(operation.object) + ": ";
    const bool sends = std::any_of(inside.begin(), inside.end(),
                                   [this](std::uint32_t rank) { return ranks_[rank].provider.sends > 0; });
    // MPI_Finalize has no arguments, and waits for the sends that are over for the program.
    if (outside.empty() && operation.call == MpiCall::MPI_Finalize && sends) {
      text += "all its ranks are in it, but messages that they have sent were not received\n";
      continue;
    }
    if (!outside.empty()) {
      text += name_ranks(inside) + are(inside) + " in it, " + name_ranks(outside) + are(outside) + " not\n";
      continue;
    }
    // MPICH exchanges messages for ever while it finds no number for the new communicator.
    const bool makes_one = name_of(operation.call).starts_with("MPI_Comm_");
    text += "all its ranks are in it, but their arguments or earlier calls do not match";
    text += makes_one ? ", or MPI has no room for another communicator and tries again\n" : "\n";
  }
  return text;
}

std::string Report::different_collectives(const ObjectSnapshot& object) const {
  std::string text = "  different calls on " + object_text(object) + ": ";
  Members missing;
  bool is_first = true;
  for (const auto& [operation, inside, outside] : graph_.meetings()) {
    if (inside.empty() || !operation.object.is(object)) continue;
    text += (is_first ? "" : ", ") + name_ranks(inside) + " in " + std::string(name_of(operation.call));
    if (is_first) missing = outside;
    is_first = false;
    std::erase_if(missing, [&inside](std::uint32_t rank) {
      return std::find(inside.begin(), inside.end(), rank) != inside.end();
    });
  }
  return text + (missing.empty() ? "" : ", " + name_ranks(missing) + " in none of them") + "\n";
}

std::string Report::text() const {
  return standing() + waits_for_nobody() + cycles() + missing();
}

}  // namespace

std::string deadlock_report(const std::vector<RankSnapshot>& ranks) {
  return Report(ranks).text();
}

}  // namespace apenet
