#include "runtime/launch/rank_server.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <system_error>

#include "runtime/launch/host_thread.hpp"

namespace apenet {
namespace {

using namespace std::chrono_literals;
constexpr auto terminate_grace = 300ms;  // between SIGTERM and SIGKILL
constexpr auto kill_patience = 2s;       // limit for killed processes to disappear

std::vector<int> pmi_fds(const std::vector<RankProcess>& ranks) {
  std::vector<int> fds;
  fds.reserve(ranks.size());
  for (const RankProcess& rank : ranks) fds.push_back(rank.pmi_fd);
  return fds;
}

std::vector<std::array<int, 2>> pipes(const std::vector<RankProcess>& ranks) {
  std::vector<std::array<int, 2>> fds;
  fds.reserve(ranks.size());
  for (const RankProcess& rank : ranks) fds.push_back({rank.output_fd, rank.error_fd});
  return fds;
}

}  // namespace

RankServer::RankServer(SharedMemory& shared, Scheduler& scheduler, ProcessIds& process_ids, Verdict& verdict,
                       const SessionOptions& options, const std::vector<RankProcess>& ranks,
                       int supervisor_fd, const ManagerSocket& manager)
    : shared_(shared),
      scheduler_(scheduler),
      process_ids_(process_ids),
      verdict_(verdict),
      count_(static_cast<std::uint32_t>(ranks.size())),
      patience_(options.stall_timeout_ms),
      start_launcher_(options.start_launcher),
      manager_(manager),
      pmi_(pmi_fds(ranks),
           [this](std::uint32_t rank, const std::string& library) { return find_launcher(rank, library); }),
      output_(scheduler.view(), pipes(ranks), {options.output_fd, options.error_fd}, options.tag_output),
      failure_watch_(shared, scheduler.view().ranks, pmi_, count_),
      images_(shared, options),
      processes_(
          ranks, supervisor_fd, poller_, process_ids.tree(), [this](std::uint32_t rank) { on_end(rank); },
          [this](const supervisor::Notice& notice, std::optional<std::uint32_t> leader_of) {
            images_.note_end(notice, leader_of);
          }) {
  poller_.add(manager_.fd(), Poller::Source::manager);
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    poller_.add(ranks[rank].pmi_fd, Poller::Source::pmi, rank);
    poller_.add(ranks[rank].output_fd, Poller::Source::output, rank);
    poller_.add(ranks[rank].error_fd, Poller::Source::error, rank);
  }
}

bool RankServer::serve(int timeout_ms) {
  return poller_.wait(timeout_ms, [this](Poller::Source source, std::size_t index) {
    const auto rank = static_cast<std::uint32_t>(index);
    switch (source) {
      case Poller::Source::pmi:
        serve_pmi(rank);
        break;
      case Poller::Source::manager:
        accept_connections();
        break;
      case Poller::Source::output:
        output_.read(rank, 0);
        break;
      case Poller::Source::error:
        output_.read(rank, 1);
        break;
      case Poller::Source::child:
        processes_.hear_child(index);
        break;
      case Poller::Source::supervisor:
        if (!processes_.hear_supervisor())
          verdict_.stop(SessionReport::Outcome::failed, 1,
                        "apenet-supervisor, which starts the ranks and reports their ends, has ended");
        break;
    }
  });
}

void RankServer::accept_connections() {
  while (const auto connection = manager_.accept(process_ids_.tree(), count_)) {
    const auto [rank, fd] = *connection;
    const int before = pmi_.fd(rank);
    if (before >= 0 && !pmi_.spoke(rank)) poller_.remove(before);
    if (pmi_.reconnect(rank, fd)) poller_.add(fd, Poller::Source::pmi, rank);
  }
}

bool RankServer::serve_pmi(std::uint32_t rank) {
  const int fd = pmi_.fd(rank);
  try {
    if (fd >= 0 && pmi_.serve(rank)) return true;
    poller_.remove(fd);
  } catch (const RankError& error) {
    failure_watch_.note(error);
  }
  return false;
}

std::string RankServer::find_launcher(std::uint32_t rank, const std::string& library) {
  if (!start_launcher_) return "rc=-1 msg=this run cannot start one";
  if (!late_launcher_) late_launcher_ = start_launcher_(library);
  if (rank < late_launcher_->pipes.size()) return "rc=0 path=" + late_launcher_->pipes[rank];
  return "rc=-1 msg=" + late_launcher_->refused;
}

HostWaits::Queries RankServer::wait_queries() const {
  return {.waits_for_others = [this](std::uint32_t rank) { return waits_for_others(rank); },
          .alarm_ns =
              [this](int process_id, std::optional<std::uint32_t> rank) {
                const std::int64_t early_ns = shared_.image(static_cast<std::uint32_t>(process_id)).alarm_ns;
                return rank ? std::max(early_ns, scheduler_.view().ranks.outside(*rank).alarm_ns.load())
                            : early_ns;
              },
          .waiting_parents = [this] { return waiting_parents(process_ids_.tree().root()); }};
}

bool RankServer::is_kept_in_init(std::uint32_t rank) const {
  if (launcher_id() == 0 || shared_.block(rank).identity.initialising == 0) return false;
  for (std::uint32_t other = 0; other < count_; ++other) {
    if (waits_for_others(other)) return true;  // it has another library
    if (ended(other) && shared_.block(other).identity.initialised == 0) return true;
  }
  return false;
}

int RankServer::launcher_id() const {
  return late_launcher_ ? late_launcher_->process_id : 0;
}

void RankServer::on_end(std::uint32_t rank) {
  int process_id = 0;
  try {
    process_id = watch_attached(rank);
  } catch (const RankError& error) {
    failure_watch_.note(error);  // the process has ended all the same
  }
  if (!processes_.has_ended(rank, process_id)) {
    processes_.end_with_leader(rank);
    return;
  }
  if (process_id == 0 && is_left_to_a_child(rank)) return;
  left_to_children_.erase(rank);
  scheduler_.remove(rank);
  // MPICH reports a fatal error and continues, into a segmentation fault unless it is ended at once. Read the
  // report first.
  serve_pmi(rank);
  pmi_.note_end(rank);
  failure_watch_.notice_aborts();
  failure_watch_.notice_abort(rank);
  output_.read(rank, 1);
  if (processes_.is_leaderless(rank)) output_.end(rank);
  if (failure_watch_.notice_refusal(rank, output_.refusal(rank))) return;
  failure_watch_.note_end(rank, processes_);
}

// The leader has ended without an error and without MPI, and a process that it has left behind may still call
// MPI_Init. As with other launchers, one that holds the rank's output counts. One that holds only the socket
// of the process manager, or the rank's number in its environment, may be a daemon that calls no MPI.
bool RankServer::is_left_to_a_child(std::uint32_t rank) {
  const RankProcesses::End& leader = processes_.end_of_leader(rank);
  const bool has_succeeded = leader.how == RankReport::End::exited && leader.status == 0;
  if (!processes_.has_supervisor() || !has_succeeded || failures().has(rank)) return false;
  for (int stream = 0; stream < 2; ++stream) output_.read(rank, stream);
  const bool has_daemon = serve_pmi(rank) || has_orphan(rank);
  const auto since = left_to_children_.try_emplace(rank, WallClock::now()).first->second;
  return output_.is_open(rank) || (has_daemon && WallClock::now() - since < patience_);
}

bool RankServer::has_orphan(std::uint32_t rank) const {
  const std::string variable = std::string(ipc::rank_variable) + "=" + std::to_string(rank) + '\0';
  for (const int child : children_of(process_ids_.tree().root())) {
    if (process_ids_.tree().is_orphan(child) &&
        process_file(child, "environ").find(variable) != std::string::npos)
      return true;
  }
  return false;
}

bool RankServer::refuse_two_libraries() {
  if (!pmi_.refuse_two_libraries()) return false;
  watch_attached();
  return true;
}

bool RankServer::abandon_daemons() {
  bool any = false;
  for (auto& [rank, since] : left_to_children_) {
    if (output_.is_open(rank)) continue;
    since = WallClock::now() - patience_;
    any = true;
  }
  return any;
}

void RankServer::watch_attached() {
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    failure_watch_.notice_refusal(rank, output_.refusal(rank));
    const int process_id = watch_attached(rank);
    if (!left_to_children_.contains(rank)) continue;
    if (process_id == 0) {
      on_end(rank);
    } else {
      left_to_children_.erase(rank);
    }
  }
}

// Returns the id of the process that takes part for the rank. It may have ended before anyone has checked.
int RankServer::watch_attached(std::uint32_t rank) {
  const bool runs = process_ids_.running(rank) != 0;
  auto process_id = static_cast<int>(process_ids_.of(rank));
  if (process_id == 0) process_id = static_cast<int>(process_ids_.gone(rank));
  processes_.attach(rank, process_id, runs);
  return process_id;
}

void RankServer::notice_failures() {
  failure_watch_.notice_aborts();
  failure_watch_.notice_strangers();
}

void RankServer::notice_lost_output() {
  const int error = output_.sink_error();
  if (error == 0) return;
  constexpr auto outcome = SessionReport::Outcome::output_closed;
  if (error == EPIPE) {
    verdict_.stop(outcome, 128 + SIGPIPE, "the reader of the output has closed it");
  } else {
    verdict_.stop(outcome, 2, "the output cannot be written: " + std::generic_category().message(error));
  }
}

int RankServer::group_of(std::uint32_t rank) const {
  const int leader_id = processes_.leader_id(rank);
  if (leader_id != 0) return leader_id;
  const std::uint32_t process_id = process_ids_.running(rank);
  return process_id != 0 ? getpgid(static_cast<pid_t>(process_id)) : -1;
}

void RankServer::terminate() {
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    if (!ended(rank)) failure_watch_.excuse(rank);
  }
  processes_.terminate_ranks();
  const auto deadline = WallClock::now() + terminate_grace;
  while (processes_.any_alive() && WallClock::now() < deadline) serve(5);
}

void RankServer::kill_all() {
  processes_.kill_all();
  const auto last = WallClock::now() + kill_patience;
  while (!processes_.all_gone() && WallClock::now() < last) serve(5);
  images_.remove_made();
}

void RankServer::find_vanished() {
  if (!processes_.has_supervisor()) return;
  serve(0);
  images_.find_vanished(process_ids_.tree());
}

void RankServer::report(SessionReport& report) const {
  report.ranks.resize(count_);
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    RankProcesses::End end = processes_.end_of_rank(rank);
    if (failure_watch_.is_excused(rank)) end = {.how = RankReport::End::killed, .status = SIGTERM};
    report.ranks[rank].end = end.how;
    report.ranks[rank].status = end.status;
    report.ranks[rank].spoke_pmi = pmi_.spoke(rank);
  }
  images_.report(report);
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    // A program whose shim has refused it has the shim, though it has ended before it made a record.
    const bool is_refused = !output_.refusal(rank).empty() || !pmi_.refusal(rank).empty();
    if (is_refused) report.ranks[rank].started_raw.clear();
  }
  if (pmi_.spawn_refused())
    report.warnings.emplace_back(
        "MPI_Comm_spawn was refused: a simulated machine has a fixed number of processes");
}

}  // namespace apenet
