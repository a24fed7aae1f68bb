#include "runtime/launch/run_loop.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "runtime/ipc/futex.hpp"

namespace apenet {
namespace {

using namespace std::chrono_literals;

constexpr auto look_interval = 20ms;
constexpr auto early_end_grace = 1s;     // for the others, when a rank ends without MPI_Finalize
constexpr auto terminate_grace = 300ms;  // between SIGTERM and SIGKILL
constexpr int threads_wait_factor = 10;  // patience with processes that have threads, which may be at work

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

// Whether any thread of a process has work for a core at this moment.
bool is_at_work(std::uint32_t process_id) {
  std::error_code error;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process_id) + "/task", error)) {
    std::ifstream file(task.path() / "stat");
    std::string text;
    std::getline(file, text);
    const std::size_t name_end = text.rfind(')');  // the name may hold anything
    if (name_end != std::string::npos && text.compare(name_end + 1, 2, " R") == 0) return true;
  }
  return false;
}

std::string signal_name(int signal) {
  const char* name = sigdescr_np(signal);
  return "signal " + std::to_string(signal) +
         (name != nullptr ? std::string(" (") + name + ")" : std::string{});
}

}  // namespace

RunLoop::RunLoop(Mapping& mapping, Scheduler& scheduler, const SessionOptions& options,
                 const std::vector<RankProcess>& ranks, int launcher_id)
    : mapping_(mapping),
      scheduler_(scheduler),
      options_(options),
      count_(static_cast<std::uint32_t>(ranks.size())),
      pmi_(pmi_fds(ranks)),
      output_(pipes(ranks), {options.output_fd, options.error_fd}),
      children_(2 * ranks.size() + 1),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    add(ranks[rank].pmi_fd, Source::pmi, rank);
    add(ranks[rank].output_fd, Source::output, rank);
    add(ranks[rank].error_fd, Source::error, rank);
    if (ranks[rank].process_id != 0) add(children_.watch(rank, ranks[rank].process_id), Source::child, rank);
  }
  if (launcher_id != 0)
    add(children_.watch(2 * std::size_t{count_}, launcher_id), Source::child, 2 * std::size_t{count_});
}

RunLoop::~RunLoop() {
  close(epoll_);
}

void RunLoop::add(int fd, Source source, std::size_t index) {
  if (fd < 0) return;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<std::uint64_t>(source) << 32 | index;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) {
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
  }
}

void RunLoop::run(SessionReport& report, const std::function<bool()>& interrupted) {
  while (children_.alive() > 0 && !failure_) {
    if (!all_finished_ && mapping_.header().running.load() == 0) {
      step();
    } else {
      wait_for_processes();
    }
    look_around(interrupted);
  }
  if (failure_) terminate();
  children_.signal_all(SIGKILL);  // what ranks have left running behind them
  output_.end_all();
  judge(report);
}

void RunLoop::step() {
  // Everybody waits: what they have written is in their pipes.
  while (serve(0)) {
  }
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    if (output_.holds(rank) && scheduler_.wait_of(rank) != ipc::Wait::finished) output_.pass_lines(rank);
  }
  speaker_ = 0;
  busy_since_.reset();
  const bool was_started = scheduler_.started();
  Scheduler::Outcome outcome{};
  try {
    outcome = scheduler_.step();
  } catch (const NetworkPartitioned& partition) {
    fail(SessionReport::Outcome::failed, 1,
         std::string("the network is partitioned: ") + partition.what() +
             "; each rank's clock stands where it began to wait, before that or after");
    return;
  } catch (const EndOfTime& end) {
    fail(SessionReport::Outcome::failed, 1, end.what());
    return;
  }
  if (!was_started && scheduler_.started() && options_.pin) begin_pinned();
  switch (outcome) {
    case Scheduler::Outcome::woken:
      break;
    case Scheduler::Outcome::idle:
      on_idle();
      break;
    case Scheduler::Outcome::finished:
      all_finished_ = true;
      break;
  }
}

// Only now: before virtual time begins the processes start up, each for itself, and that goes faster on all
// cores.
void RunLoop::begin_pinned() {
  affinity_.emplace();
  for (std::uint32_t rank = 0; rank < count_; ++rank) affinity_->hold(mapping_.block(rank).process_id);
}

void RunLoop::wait_for_processes() {
  if (!scheduler_.started() || all_finished_) {
    serve(all_finished_ ? 20 : 1);
    pass_output();
    return;
  }
  std::atomic<std::uint32_t>& running = mapping_.header().running;
  const std::uint32_t seen = running.load();
  if (seen == 0) return;
  const timespec patience{0, 1'000'000};
  ipc::futex_wait(running, seen, &patience);
  if (running.load() != seen) return;
  // Somebody computes, waits for the host, or has filled its pipe.
  serve(0);
  pass_output();
  notice_busy();
}

// Ranks that meet outside MPI may stand still, and the run with them: that is said, once, and nothing else
// comes of it.
void RunLoop::notice_busy() {
  if (busy_told_) return;
  const auto now = WallClock::now();
  if (!busy_since_) busy_since_ = now;
  const auto busy = std::chrono::duration_cast<std::chrono::milliseconds>(now - *busy_since_);
  if (busy.count() < options_.busy_notice_ms) return;
  std::uint32_t others = 0;
  std::optional<std::uint32_t> first;
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    if (scheduler_.wait_of(rank) != ipc::Wait::running) continue;
    if (first) ++others;
    if (!first) first = rank;
  }
  if (!first) return;
  busy_told_ = true;
  const std::string more = others > 0 ? " (as have " + std::to_string(others) + " more)" : std::string{};
  dprintf(options_.error_fd,
          "apenet: rank %u has been busy in the host for %.1f s%s: it %s; virtual time waits for it\n",
          *first, static_cast<double>(busy.count()) * 1e-3, more.c_str(),
          is_at_work(mapping_.block(*first).process_id)
              ? "computes"
              : "is blocked there (a read, a lock, another process)");
}

// What may be passed on now without the host's speed deciding the order; see output.hpp.
void RunLoop::pass_output() {
  if (all_finished_) {
    output_.pass_in_turn();
    return;
  }
  for (; speaker_ < count_; ++speaker_) {
    const ipc::Wait wait = scheduler_.wait_of(speaker_);
    if (wait == ipc::Wait::finished) continue;
    output_.read(speaker_, 0);
    output_.read(speaker_, 1);
    output_.pass_lines(speaker_);
    if (wait == ipc::Wait::running) return;
  }
}

// Everybody waits and the network is empty: either something outside it has to move (a process manager,
// another thread), or the program is deadlocked.
void RunLoop::on_idle() {
  const auto now = WallClock::now();
  if (const std::uint64_t activity = activity_of_all(); !idle_since_ || idle_activity_ != activity) {
    idle_since_ = now;
    idle_activity_ = activity;
    idle_releases_ = 0;
  }
  const bool started = scheduler_.started();
  const std::chrono::milliseconds limit(started ? options_.deadlock_wait_ms : options_.startup_wait_ms);
  if (now - *idle_since_ > limit &&
      (!started || !may_have_threads_at_work() || now - *idle_since_ > limit * threads_wait_factor)) {
    // That others wait for a rank which has left says less than that it left.
    if (give_up_at_) {
      fail(SessionReport::Outcome::failed, 1, give_up_message_);
    } else {
      fail(SessionReport::Outcome::deadlock, 1,
           "every process waits and nothing is under way in the network\n" + scheduler_.describe_waiting());
    }
    return;
  }
  if (++idle_releases_ > 3) serve(started ? 5 : 1);
  scheduler_.release_idle();
}

// Changes whenever a process does anything: posts, receives, calls MPI, lets its clock run.
std::uint64_t RunLoop::activity_of_all() const {
  std::uint64_t activity = scheduler_.activity();
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    const ipc::Block& block = mapping_.block(rank);
    activity += block.calls + static_cast<std::uint64_t>(block.clock_ps);
  }
  return activity;
}

bool RunLoop::may_have_threads_at_work() const {
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    const std::uint32_t process_id = mapping_.block(rank).process_id;
    std::error_code error;
    const std::filesystem::directory_iterator tasks("/proc/" + std::to_string(process_id) + "/task", error);
    if (!error && std::distance(begin(tasks), end(tasks)) > 1) return true;
  }
  return false;
}

// True when there may be more to serve at once.
bool RunLoop::serve(int timeout_ms) {
  std::array<epoll_event, 64> ready{};
  const int count = epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), timeout_ms);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t data = ready[static_cast<std::size_t>(i)].data.u64;
    const auto source = static_cast<Source>(data >> 32);
    const auto index = static_cast<std::uint32_t>(data);
    switch (source) {
      case Source::pmi:
        if (!pmi_.serve(index)) epoll_ctl(epoll_, EPOLL_CTL_DEL, pmi_.fd(index), nullptr);
        break;
      case Source::output:
        output_.read(index, 0);
        break;
      case Source::error:
        output_.read(index, 1);
        break;
      case Source::child:
        on_child_end(index);
        break;
    }
  }
  return count == static_cast<int>(ready.size());
}

// A code beyond a status is that of MPICH's own errors.
void RunLoop::notice_abort() {
  const auto& abort = pmi_.abort();
  if (!abort) return;
  const int low = abort->exit_code & 0xff;
  const int status = low == 0 ? 1 : low;
  const std::string beyond = low == abort->exit_code ? "" : ", which is status " + std::to_string(status);
  fail(SessionReport::Outcome::aborted, status,
       "rank " + std::to_string(abort->rank) + " called MPI_Abort(" + std::to_string(abort->exit_code) + ")" +
           beyond);
}

void RunLoop::look_around(const std::function<bool()>& interrupted) {
  notice_abort();
  const auto now = WallClock::now();
  if (now < next_look_ || failure_) return;
  next_look_ = now + look_interval;
  watch_attached();
  if (interrupted()) fail(SessionReport::Outcome::interrupted, 128 + SIGINT, "interrupted");
  if (output_.sink_closed())
    fail(SessionReport::Outcome::output_closed, 128 + SIGPIPE, "nobody reads the output any more");
  if (give_up_at_ && now > *give_up_at_) fail(SessionReport::Outcome::failed, 1, give_up_message_);
}

// A rank's MPI process may be a child of what was started for it (a script), or somebody else's (mpirun's).
void RunLoop::watch_attached() {
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    const auto process_id = static_cast<int>(mapping_.block(rank).process_id);
    const std::size_t index = std::size_t{count_} + rank;
    if (process_id == 0 || children_.watched(index) || children_.is(rank, process_id)) continue;
    add(children_.watch(index, process_id), Source::child, index);
    if (children_.ended(index)) on_child_end(index);
  }
}

void RunLoop::on_child_end(std::size_t index) {
  children_.reap(index);
  if (index < 2 * std::size_t{count_}) on_rank_end(static_cast<std::uint32_t>(index % count_), index);
}

void RunLoop::on_rank_end(std::uint32_t rank, std::size_t child) {
  const ipc::Block& block = mapping_.block(rank);
  const bool is_leader = child < count_;
  // A script that claims nothing may end after its MPI process, or before it if it left it in the background.
  const bool mpi_process_gone = block.process_id == 0 || !is_leader ||
                                children_.is(rank, static_cast<int>(block.process_id)) ||
                                children_.ended(std::size_t{count_} + rank);
  if (!mpi_process_gone) return;
  scheduler_.remove(rank);
  // MPICH tells of a fatal error and goes on, into a segmentation fault where nobody ends it at once.
  pmi_.serve(rank);
  notice_abort();
  output_.read(rank, 0);
  output_.read(rank, 1);
  if (is_leader || !children_.watched(rank)) output_.end(rank);
  const std::string name = "rank " + std::to_string(rank);
  if (children_.end(child) == RankReport::End::killed) {
    const int signal = children_.status(child);
    fail(SessionReport::Outcome::failed, 128 + signal, name + " was ended by " + signal_name(signal));
  } else if (children_.status(child) != 0) {
    fail(SessionReport::Outcome::failed, children_.status(child),
         name + " exited with status " + std::to_string(children_.status(child)));
  } else if (block.initialised != 0 && block.finalised == 0 && block.closed == 0 && !give_up_at_) {
    give_up_at_ = WallClock::now() + early_end_grace;
    give_up_message_ = name + " exited without calling MPI_Finalize";
  } else if (block.initialised == 0 && is_leader && !give_up_at_) {
    give_up_at_ = WallClock::now() + early_end_grace;
    give_up_message_ = name + " exited without calling MPI_Init while others run";
  }
}

void RunLoop::fail(SessionReport::Outcome outcome, int exit_status, std::string message) {
  if (!failure_) failure_ = Failure{outcome, exit_status, std::move(message)};
}

void RunLoop::terminate() {
  // What the failing rank prints as it goes is worth a moment: MPI_Abort writes its message after telling us.
  const auto settle = WallClock::now() + 50ms;
  const bool aborted = failure_ && failure_->outcome == SessionReport::Outcome::aborted;
  while (aborted && children_.alive() > 0 && WallClock::now() < settle) serve(5);
  children_.signal_all(SIGTERM);
  const auto deadline = WallClock::now() + terminate_grace;
  while (children_.alive() > 0 && WallClock::now() < deadline) serve(5);
  children_.signal_all(SIGKILL);
  const auto last = WallClock::now() + 2s;
  while (children_.alive() > 0 && WallClock::now() < last) serve(5);
}

void RunLoop::judge(SessionReport& report) const {
  report.ranks.resize(count_);
  bool any_initialised = false;
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    const std::size_t child = children_.watched(rank) ? rank : std::size_t{count_} + rank;
    report.ranks[rank].end = children_.end(child);
    report.ranks[rank].status = children_.status(child);
    any_initialised = any_initialised || mapping_.block(rank).initialised != 0;
  }
  if (pmi_.spawn_refused())
    report.warnings.push_back(
        "MPI_Comm_spawn was refused: a simulated machine has a fixed number of processes");
  if (failure_) {
    report.outcome = failure_->outcome;
    report.exit_status = failure_->exit_status;
    report.message = failure_->message;
  } else if (give_up_at_ && any_initialised) {
    report.outcome = SessionReport::Outcome::failed;
    report.exit_status = 1;
    report.message = give_up_message_;
  } else {
    const std::size_t launcher = 2 * std::size_t{count_};
    if (children_.watched(launcher) && children_.status(launcher) != 0) {
      report.outcome = SessionReport::Outcome::failed;
      report.exit_status = children_.status(launcher);
      report.message = "the launcher exited with status " + std::to_string(report.exit_status);
    }
  }
}

}  // namespace apenet
