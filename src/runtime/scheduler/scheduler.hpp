// Scheduler: decides which process may run, and up to which virtual time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernel/simulation.hpp"
#include "kernel/trace.hpp"
#include "machine/machine.hpp"
#include "runtime/scheduler/exchange.hpp"
#include "runtime/scheduler/left_behind.hpp"
#include "runtime/scheduler/pending_requests.hpp"
#include "runtime/scheduler/process_memory.hpp"
#include "runtime/scheduler/route_orders.hpp"
#include "runtime/scheduler/shared_memory.hpp"
#include "runtime/scheduler/vain_alarms.hpp"

namespace apenet {

// Totals of a run. They do not depend on the host.
struct RunTotals {
  std::uint64_t messages = 0;          // sends, puts and gets posted after virtual time began
  std::uint64_t startup_messages = 0;  // the same before virtual time began, by MPI_Init
  std::uint64_t bytes = 0;             // bytes of `messages`
  // Posted at a time that the model had already passed, by another thread of the process.
  std::uint64_t late_posts = 0;
  std::uint64_t failed_accesses = 0;  // puts and gets to memory that is not mapped or not opened
};

// A process's clock, or what it has posted, has reached ipc::end_of_time_ps.
class EndOfTime : public std::runtime_error {
 public:
  explicit EndOfTime(std::uint32_t rank)
      : std::runtime_error("rank " + std::to_string(rank) +
                           " has reached the end of virtual time, 104 days") {}
};

// Advances the model while no process runs. A step takes what the processes have posted, sorts it by (time,
// rank, position), feeds the machine, and runs the model up to the horizon: the earliest time at which a
// process could act, plus the lookahead. It then puts the resulting events into the rings and wakes the
// affected processes. A process is told "nothing at t" only if t lies before its own horizon.
class Scheduler final : public CompletionSink {
 public:
  enum class Outcome {
    woken,     // at least one process runs
    idle,      // all processes wait, and the network is empty
    finished,  // all processes have left
  };

  Scheduler(Simulation& simulation, Machine& machine, SharedMemory& shared);

  // Requires that no process runs. Throws EndOfTime, or RankError if a process has written invalid data; the
  // run cannot continue after either.
  Outcome step();
  // The processes that the last step has woken.
  [[nodiscard]] const std::vector<std::uint32_t>& last_woken() const { return to_wake_; }
  // Call after `idle`: wakes each process that waits for an event once, without an event, because progress
  // may come from outside the network (a process manager, another thread). A process that polls without end
  // is woken only if another of its threads may need the turn, because each poll advances its clock.
  void release_idle(const std::function<bool(std::uint32_t rank)>& has_threads);
  // From now on wakes one process at a time: the next of a step when the one before waits. The results are
  // the same.
  void wake_singly() { wakes_singly_ = true; }
  // From now on wakes a process for each of its events: a timeline shows every wait. The results are the
  // same.
  void wake_for_each_event() { wakes_for_each_event_ = true; }
  // The run ends at this time, because a rank has failed: from now on no process runs ahead of it, although
  // nothing may be left that could still send it something.
  void end_at(std::int64_t failure_ps) { end_ps_ = failure_ps; }
  // Processes wait until others, woken in the same step, wait: with wake_singly(), or because they share
  // memory.
  [[nodiscard]] bool has_turns_to_give() const { return !waiting_for_turn_.empty(); }
  // Wakes the next of them beside the ones that run, which wait for it in the host.
  void wake_beside();
  // No process runs.
  [[nodiscard]] bool all_wait() const;
  // As all_wait(), but faster while some processes run. The count of running processes can be overwritten by
  // any process, so it is only a hint.
  [[nodiscard]] bool nobody_runs() const { return shared_.running().count.load() == 0 && all_wait(); }
  // Repairs the effect of a stray write to that count, or to the futex word that wakes a process.
  void recover();
  // Call when the process has ended without leaving the simulation.
  void remove(std::uint32_t rank);
  // Returns the processes that run while at least one other waits for the model; empty if none waits.
  [[nodiscard]] std::vector<std::uint32_t> held_up_by() const;
  // Continues without these ranks, which sleep in the host. A process that wakes returns by itself, at its
  // own clock or at the time up to which others have acted, whichever is later. Calls still_asleep() once
  // none of the ranks can use its block any more. Returns false without any effect if still_asleep() does, or
  // if a rank may be in the middle of an operation.
  bool leave_out(const std::vector<std::uint32_t>& ranks, const std::function<bool()>& still_asleep);
  // Whether another process, or the model, could go on if the step did not wait for the processes that run.
  [[nodiscard]] bool could_go_on() const;
  // The process shares memory with others of its node.
  [[nodiscard]] bool shares_memory(std::uint32_t rank) const { return processes_[rank].shares_memory; }
  // What the process waits for outside the simulation; it may have written anything.
  [[nodiscard]] const ipc::OutsideNote& outside(std::uint32_t rank) { return shared_.block(rank).outside; }
  // The ranks that are left out and have not come back.
  [[nodiscard]] std::vector<std::uint32_t> left_out() const;
  // No other process is left that could continue.
  // How many MPI calls the rank has made.
  [[nodiscard]] std::uint32_t calls_of(std::uint32_t rank) const {
    return shared_.block(rank).progress.calls();
  }
  [[nodiscard]] bool all_are_left_out() const { return !absent_.empty() && absent_.size() == alive_; }

  [[nodiscard]] bool started() const { return started_; }
  // Call before the first step, and from then on for each leader that becomes known.
  void set_tree(ProcessTree tree) { process_ids_.set_tree(std::move(tree)); }
  [[nodiscard]] ProcessTree& tree() { return process_ids_.tree(); }
  // The process that has claimed the rank, or 0 for none; it may have ended. Throws RankError.
  [[nodiscard]] std::uint32_t process_id(std::uint32_t rank) { return process_ids_.of(rank); }
  [[nodiscard]] std::uint32_t gone_process_id(std::uint32_t rank) const { return process_ids_.gone(rank); }
  // The same, but 0 also if it has ended.
  [[nodiscard]] std::uint32_t running_process_id(std::uint32_t rank) { return process_ids_.running(rank); }
  // The same for every rank.
  [[nodiscard]] std::vector<int> process_ids() { return process_ids_.all_running(); }
  // The clock value at which virtual time began.
  [[nodiscard]] std::int64_t epoch_ps() const { return epoch_ps_; }
  // Changes whenever a process does anything: posts, receives, calls MPI, advances its clock. Two equal
  // readings around an idle release mean that no process acted.
  [[nodiscard]] std::uint64_t activity() const;
  [[nodiscard]] const RunTotals& totals() const { return totals_; }
  // Use of the links since virtual time began.
  [[nodiscard]] std::vector<LinkUse> link_use() const;
  [[nodiscard]] const std::vector<RouteChange>& route_changes() const { return route_orders_.changes(); }
  // Hash of every completion since virtual time began, in order. Two runs with equal hashes did the same.
  [[nodiscard]] std::uint64_t trace_hash() const { return hash_.value(); }
  // The virtual time at which the process last resumed after a wait, or before_time_ps if never. May be
  // called while processes run: a process prints nothing between the events that it has waited for together.
  static constexpr std::int64_t before_time_ps = -1;
  [[nodiscard]] std::int64_t resumed_ps(std::uint32_t rank) const;
  // The process's current clock, or before_time_ps before virtual time.
  [[nodiscard]] std::int64_t clock_ps(std::uint32_t rank) const;
  // The process has been woken since the last step, or computes aside, and may still run.
  [[nodiscard]] bool is_out(std::uint32_t rank) const {
    const ipc::Wait wait = processes_[rank].wait;
    return wait == ipc::Wait::running || wait == ipc::Wait::computes;
  }
  // If the process computes aside and has not got its turn since: until when, at least. Also if it has ended
  // meanwhile: the others go on up to that time in any case. May be called while processes run.
  [[nodiscard]] std::optional<std::int64_t> computes_until_ps(std::uint32_t rank) const;
  // Returns whether the process computes on the host beside the others. May be called while processes run.
  [[nodiscard]] bool computes_aside(std::uint32_t rank) const {
    return shared_.block(rank).turn.run.load() == ipc::Run::aside;
  }
  // For each process, a lower bound of the time at which it is woken next. For a process that runs or has
  // left: the time at which it was last woken. May be called while processes run.
  void earliest_wakes(std::vector<std::int64_t>& wakes_ps) const;
  // The process runs, and does not wait for the turns of others to end. May be called while processes run.
  [[nodiscard]] bool has_turn(std::uint32_t rank) const;
  // What the process does now. May be called while processes run.
  [[nodiscard]] ipc::Wait wait_of(std::uint32_t rank) const;
  // place_of: "exchange.c:12", where the program makes a call (ipc::CallNote); empty if it is not known.
  // Describes what the processes wait for and why none can continue; see deadlock_report.hpp. Requires that
  // all wait, or that those that run sleep in the host.
  using PlaceOfCall =
      std::function<std::string(std::uint32_t rank, std::uint64_t caller, std::uint64_t frame)>;
  [[nodiscard]] std::string describe_waiting(const PlaceOfCall& place_of);

  // What ranks that have finalised MPI left behind: windows, messages that nobody has received. Lines for the
  // report.
  [[nodiscard]] std::vector<std::string> describe_left_behind(const LineOfCode& line_of);

  void complete(const Completion& completion) override;
  void land(ProcessId source, std::uint64_t message) override;
  void execute(ProcessId source, std::uint64_t message) override;

 private:
  static constexpr std::int64_t never_ps = Time::never().ps();

  // The scheduler's compact copy of a process's state. The blocks themselves lie pages apart.
  struct Process {
    ipc::Wait wait = ipc::Wait::running;
    std::int64_t clock_ps = 0;
    std::int64_t deadline_ps = 0;
    std::int64_t first_event_ps = 0;
    // Wait::for_event: of the event because of which it acts; never as long as it sleeps on, see Turn.
    std::int64_t acts_on_ps = never_ps;
    std::uint32_t least_events = 1;
    std::int64_t woken_ps = before_time_ps;
    std::int64_t horizon_ps = 0;      // when it was last woken
    bool removed = false;             // the host process has ended
    bool looks_for_ever = false;      // ipc::Wait::until, polling without end
    bool left_out = false;            // as of the last step, ipc::Wait::away
    bool shares_memory = false;       // with other processes of its node
    bool waits_for_turn = false;      // of the last step
    std::uint32_t events = 0;         // in the ring
    std::deque<ipc::Event> overflow;  // events for which the ring has no room
    // Messages taken and not released, per rail; see message::keeps_places().
    std::array<std::uint32_t, ipc::most_rails> kept{};

    // When it acts next, while it waits; never if only an event that does not exist yet can wake it.
    [[nodiscard]] std::int64_t acts_ps() const {
      if (wait == ipc::Wait::until || wait == ipc::Wait::computes) return deadline_ps;
      if (wait != ipc::Wait::for_event) return never_ps;
      const std::int64_t first_ps = std::min(acts_on_ps, has_alarm() ? deadline_ps : never_ps);
      return first_ps == never_ps ? never_ps : std::max(clock_ps, first_ps);
    }
    // Wait::for_event: another of its threads sleeps until deadline_ps.
    [[nodiscard]] bool has_alarm() const { return wait == ipc::Wait::for_event && deadline_ps != 0; }
  };
  struct Posted {
    std::int64_t time_ps;
    std::uint32_t rank;
    std::uint32_t index;  // into requests_
  };

  void collect();
  [[nodiscard]] intake::State state_of(std::uint32_t rank);
  void notice_returns();
  void place_absent();
  [[nodiscard]] std::int64_t acted_ps(std::uint32_t rank) const;
  void note_untaken(std::uint32_t rank, const ipc::Event& event);
  void give_back_untaken(std::uint32_t rank);
  void release(std::uint32_t rank, const ipc::Request& request);
  void give_back(std::uint32_t rank, std::int64_t when_ps, std::uint8_t rail);
  void feed();
  void begin_if_all_joined();
  void post(std::uint32_t rank, const ipc::Request& request);
  bool begin_if_all_ready();
  void begin(std::int64_t epoch_ps, Time now);
  [[nodiscard]] bool let_compute_aside();
  bool wake_flushing();
  [[nodiscard]] bool nobody_moves() const;
  void advance();
  [[nodiscard]] bool is_quiet() const;
  void wake_concerned();
  void wake_sleepers();
  void note_alarms();
  [[nodiscard]] bool are_alarms_vain();
  void refill(std::uint32_t rank);
  void wake(std::uint32_t rank, std::int64_t horizon_ps);
  void plan_turns();
  bool wake_next();
  void run(std::uint32_t rank);
  void report_refusal(const PendingRequest& pending);
  [[nodiscard]] ipc::Event event_now(ipc::EventKind kind, const ipc::Request& request) const;
  void tell_answered(std::uint32_t rank, const ipc::Request& request, ipc::AccessFault fault);
  // asks_nothing: see Request.
  void deliver(std::uint32_t rank, const ipc::Event& event, bool asks_nothing = false);
  [[nodiscard]] std::int64_t known_action_ps(std::uint32_t rank) const;
  void trace_wait(std::uint32_t rank) const;

  Simulation& simulation_;
  Machine& machine_;
  SharedMemory& shared_;
  Exchange exchange_;
  ProcessIds process_ids_;
  ProcessMemory memory_;
  PendingRequests pending_;
  std::vector<Process> processes_;
  std::vector<std::uint32_t> ran_;  // woken in the last step; only these can have posted
  std::vector<std::uint32_t> to_wake_;
  bool wakes_singly_ = false;
  bool wakes_for_each_event_ = false;
  std::deque<std::uint32_t> waiting_for_turn_;  // woken in the last step, except that they do not run yet
  std::vector<std::uint32_t> absent_;           // left out, or returned since the last step
  std::vector<Posted> posted_;
  std::vector<ipc::Request> requests_;  // the requests to which posted_ refers
  std::int64_t lookahead_ps_;
  RouteOrders route_orders_;
  struct LayerCosts {
    Time packet_interval;           // between packets of the library's sends
    std::int64_t after_receive_ps;  // from taking an arrival until its mailbox place is free
  };
  struct RailCosts {
    LayerCosts mpi;
    LayerCosts native;
    [[nodiscard]] const LayerCosts& of(ipc::Interface interface) const {
      return interface == ipc::Interface::libfabric ? mpi : native;
    }
  };
  std::vector<RailCosts> rail_costs_;
  std::int64_t horizon_ps_ = 0;
  std::int64_t end_ps_ = never_ps;
  std::int64_t epoch_ps_ = 0;
  std::uint32_t alive_ = 0;
  std::uint64_t activity_ = 0;
  UnreceivedMessages untaken_;  // by processes that have left
  VainAlarms vain_alarms_;
  bool alarms_are_vain_ = false;
  std::optional<std::uint64_t> stuck_at_;  // activity when all waited but the count was not zero
  bool started_ = false;
  RunTotals totals_;
  std::vector<LinkUse> startup_link_use_;  // up to the beginning of virtual time
  TraceHash hash_;
};

}  // namespace apenet
