// RunLoop: runs the processes of a simulation, serves them, and records how they end.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/launch/affinity.hpp"
#include "runtime/launch/children.hpp"
#include "runtime/launch/failures.hpp"
#include "runtime/launch/idle_watch.hpp"
#include "runtime/launch/output_pump.hpp"
#include "runtime/launch/pmi_server.hpp"
#include "runtime/launch/session_facts.hpp"
#include "runtime/launch/settling.hpp"
#include "runtime/launch/sleep_watch.hpp"
#include "runtime/launch/start_watch.hpp"
#include "runtime/launch/told.hpp"
#include "runtime/scheduler/mapping.hpp"
#include "runtime/scheduler/scheduler.hpp"

namespace apenet {

// Single-threaded: steps the scheduler when no process runs, and otherwise serves what the processes need
// from the host (process manager, pipes, ends). Wall time decides when to look, never what a process is told.
class RunLoop {
 public:
  RunLoop(Mapping& mapping, Scheduler& scheduler, const SessionOptions& options,
          const std::vector<RankProcess>& ranks, int launcher_id, int warden_fd);
  ~RunLoop();
  RunLoop(const RunLoop&) = delete;
  RunLoop& operator=(const RunLoop&) = delete;

  // Returns when no process is left. Sets outcome, exit status, message and the ranks' ends in the report.
  void run(SessionReport& report, const std::function<bool()>& interrupted);

 private:
  using WallClock = std::chrono::steady_clock;
  enum class Source : std::uint32_t { pmi, output, error, child, warden, told };
  // A reason that ends the run, whatever the ranks do.
  struct Stop {
    SessionReport::Outcome outcome;
    int exit_status;
    std::string message;
  };

  template <typename Work>
  void guarded(Work work);
  void note(const RankError& error);
  void live(const std::function<bool()>& interrupted);
  void add(int fd, Source source, std::size_t index);
  bool serve(int timeout_ms);
  void serve_pmi(std::uint32_t rank);
  void step();
  void begin_pinned();
  void on_idle();
  void wait_for_processes();
  void notice_busy();
  void watch_start();
  void leave_out_sleepers();
  [[nodiscard]] bool waits_for_absent();
  void look_around(const std::function<bool()>& interrupted);
  void settle(VirtualInstant first_failure);
  void notice_aborts();
  void notice_strangers();
  void notice_lost_output();
  void watch_attached();
  void hear_warden(int fd);
  void on_child_end(std::size_t index);
  void hear_wrappers();
  void on_rank_end(std::uint32_t rank);
  void note_failure(std::uint32_t rank, std::size_t child);
  void stop(SessionReport::Outcome outcome, int exit_status, std::string message);
  void wait_for_leavers();
  void terminate();
  void kill_all();
  [[nodiscard]] int group_of(std::uint32_t rank) const;
  [[nodiscard]] std::uint64_t activity_of_all() const;
  [[nodiscard]] std::vector<int> rank_processes();
  void judge(SessionReport& report);

  Mapping& mapping_;
  Scheduler& scheduler_;
  SessionOptions options_;
  std::uint32_t count_;
  PmiServer pmi_;
  OutputPump output_;
  // [0, n): the processes started for the ranks; [n, 2n): the MPI process of a rank if it is a different one;
  // [2n]: the launcher.
  Children children_;
  Told told_;
  int epoll_ = -1;
  std::optional<Affinity> affinity_;
  bool all_finished_ = false;
  Failures failures_;
  Settling settling_;
  bool is_settled_ = false;
  std::vector<std::uint32_t> strangers_;  // ranks that exited with status 0 without using MPI
  std::vector<bool> ended_by_us_;
  std::optional<Stop> stop_;
  IdleWatch idle_;
  StartWatch start_;
  SleepWatch sleep_;
  std::optional<WallClock::time_point> busy_since_;  // processes run, and none has been woken since
  bool busy_told_ = false;
  WallClock::time_point next_look_{};
};

}  // namespace apenet
