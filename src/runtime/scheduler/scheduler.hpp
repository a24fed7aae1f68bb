// Scheduler: which process may run up to which virtual time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernel/simulation.hpp"
#include "kernel/trace.hpp"
#include "machine/machine.hpp"
#include "runtime/scheduler/exchange.hpp"
#include "runtime/scheduler/flights.hpp"
#include "runtime/scheduler/mapping.hpp"
#include "runtime/scheduler/process_memory.hpp"

namespace apenet {

// Totals of a run; nothing of the host is in here.
struct Traffic {
  std::uint64_t messages = 0;          // sends, puts and gets posted after virtual time began
  std::uint64_t startup_messages = 0;  // before it, by MPI_Init
  std::uint64_t bytes = 0;             // of these
  std::uint64_t late_posts = 0;        // posted behind the model's time: threads of one process overtook it
  std::uint64_t failed_accesses = 0;   // puts and gets to memory that is not there or not opened
};

// A process's clock has come to ipc::end_of_time_ps: the message says whose.
class EndOfTime : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Steps the model when no process runs. A step takes what the processes have posted, orders it by (time,
// rank, position), feeds the machine and runs the model up to the horizon: the earliest time at which a
// process could act, plus the lookahead. What happened up to there is put into the processes' rings and those
// concerned are woken. A process is told "nothing at t" only if t lies before its own horizon.
class Scheduler final : public CompletionSink {
 public:
  enum class Outcome {
    woken,     // somebody runs
    idle,      // all wait, and nothing is under way in the network
    finished,  // all have left
  };

  Scheduler(Simulation& simulation, Machine& machine, Mapping& mapping);

  // Requires that no process runs. Throws EndOfTime, and RankError for what a process has written that no
  // process may write: the run cannot go on.
  Outcome step();
  // After `idle`: wakes all who wait for an event with nothing, once. Progress may come from outside the
  // network (a process manager, another thread). Who looks for ever is woken only if another of its threads
  // may want its turn: its clock goes on with each look.
  void release_idle(const std::function<bool(std::uint32_t rank)>& has_threads);
  // The process looks for ever, as of the last step: what it does is no progress.
  [[nodiscard]] bool looks_for_ever(std::uint32_t rank) const { return processes_[rank].looks_for_ever; }
  // No process runs.
  [[nodiscard]] bool all_wait() const;
  // The same, in less time while some run. The count of those that do lies where any process can write: it is
  // looked at first, and not trusted.
  [[nodiscard]] bool nobody_runs() const { return mapping_.running().load() == 0 && all_wait(); }
  // Makes good what a stray write to that count, or to the word by which a process is woken, would hold up.
  void recover();
  // The process has ended without leaving.
  void remove(std::uint32_t rank);
  // Processes that run, while at least one waits for the model; else none.
  [[nodiscard]] std::vector<std::uint32_t> held_up_by() const;
  // These sleep in the host: the others go on without them. A process that wakes comes back by itself, at its
  // clock or at the time up to which others have acted, whichever is later. still_asleep() is asked once none
  // of them can use its block any more; false, and nothing has happened, as when one of them may be in the
  // midst of something.
  bool leave_out(const std::vector<std::uint32_t>& ranks, const std::function<bool()>& still_asleep);
  // Those that are left out, and have not come back.
  [[nodiscard]] std::vector<std::uint32_t> left_out() const;
  // Nobody else is left, who could go on without them.
  [[nodiscard]] bool all_are_left_out() const { return !absent_.empty() && absent_.size() == alive_; }

  [[nodiscard]] bool started() const { return started_; }
  // The process that has claimed the rank, 0: none. Throws RankError.
  [[nodiscard]] std::uint32_t process_id(std::uint32_t rank) { return process_ids_.of(rank); }
  // The clock at which virtual time began.
  [[nodiscard]] std::int64_t epoch_ps() const { return epoch_ps_; }
  // Counts whatever processes do: two equal readings around an idle release mean that nobody moved.
  [[nodiscard]] std::uint64_t activity() const { return activity_; }
  [[nodiscard]] const Traffic& traffic() const { return traffic_; }
  // What the links have done since virtual time began.
  [[nodiscard]] std::vector<LinkUse> link_use() const;
  // Of every completion since virtual time began, in order: two runs with equal hashes did the same.
  [[nodiscard]] std::uint64_t trace_hash() const { return hash_.value(); }
  // Virtual time at which the process was last woken, before_time_ps if it has not been.
  static constexpr std::int64_t before_time_ps = -1;
  [[nodiscard]] std::int64_t woken_ps(std::uint32_t rank) const { return processes_[rank].woken_ps; }
  // Its own clock at this moment, before_time_ps before virtual time.
  [[nodiscard]] std::int64_t clock_ps(std::uint32_t rank) const;
  // Whether it has been woken since the last step, and may still run.
  [[nodiscard]] bool is_out(std::uint32_t rank) const { return processes_[rank].wait == ipc::Wait::running; }
  // Of each process, also while some run: no later than the time at which it is woken next, or, while it runs
  // and when it has left, the time at which it was woken last.
  void earliest_wakes(std::vector<std::int64_t>& wakes_ps) const;
  // What the process does at this moment, also while others run.
  [[nodiscard]] ipc::Wait wait_of(std::uint32_t rank) const;
  // What the processes wait for, and why none can go on: see deadlock_report.hpp. Requires that all wait.
  [[nodiscard]] std::string describe_waiting();

  void complete(const Completion& completion) override;
  void land(ProcessId source, std::uint64_t message) override;

 private:
  // What the scheduler knows of a process, compact: the blocks themselves are pages apart.
  struct Process {
    ipc::Wait wait = ipc::Wait::running;
    std::int64_t clock_ps = 0;
    std::int64_t deadline_ps = 0;
    std::int64_t first_event_ps = 0;
    std::int64_t woken_ps = before_time_ps;
    std::int64_t horizon_ps = 0;       // when it was last woken
    bool removed = false;              // its process has ended
    bool looks_for_ever = false;       // ipc::Wait::until
    bool left_out = false;             // as of the last step: ipc::Wait::away
    std::uint32_t events = 0;          // in the ring
    std::vector<ipc::Event> overflow;  // when the ring is full
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
  void give_back_untaken(std::uint32_t rank);
  void give_back(std::uint32_t rank, std::int64_t when_ps);
  void feed();
  void begin_if_all_joined();
  void post(std::uint32_t rank, const ipc::Request& request);
  bool begin_if_all_ready();
  void begin(std::int64_t epoch_ps, Time now);
  bool wake_flushing();
  [[nodiscard]] bool nobody_moves() const;
  void advance();
  [[nodiscard]] bool is_quiet() const;
  void wake_concerned();
  void refill(std::uint32_t rank);
  void wake(std::uint32_t rank, std::int64_t horizon_ps);
  void set_running();
  void deliver(std::uint32_t rank, const ipc::Event& event);
  [[nodiscard]] std::int64_t known_action_ps(std::uint32_t rank) const;
  void trace(const Completion& completion);
  void trace_wait(std::uint32_t rank) const;

  Simulation& simulation_;
  Machine& machine_;
  Mapping& mapping_;
  Exchange exchange_;
  ProcessIds process_ids_;
  ProcessMemory memory_;
  Flights flights_;
  std::vector<Process> processes_;
  std::vector<std::uint32_t> ran_;  // woken in the last step: only these can have posted
  std::vector<std::uint32_t> to_wake_;
  std::vector<std::uint32_t> absent_;  // left out, or back since the last step
  std::vector<Posted> posted_;
  std::vector<ipc::Request> requests_;  // those posted
  std::int64_t lookahead_ps_;
  Time packet_interval_;           // of the MPI library's sends
  std::int64_t after_receive_ps_;  // from an arrival's taking to the giving back of its place in the mailbox
  std::int64_t horizon_ps_ = 0;
  std::int64_t epoch_ps_ = 0;
  std::uint32_t alive_ = 0;
  std::uint64_t activity_ = 0;
  std::optional<std::uint64_t> stuck_at_;  // activity, when all waited and were not counted out
  bool started_ = false;
  Traffic traffic_;
  std::vector<LinkUse> startup_link_use_;  // before virtual time began
  TraceHash hash_;
};

}  // namespace apenet
