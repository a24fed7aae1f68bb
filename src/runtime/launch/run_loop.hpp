// RunLoop: lets the processes of a run live, serves them, and sees how they end.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/launch/affinity.hpp"
#include "runtime/launch/children.hpp"
#include "runtime/launch/output.hpp"
#include "runtime/launch/pmi_server.hpp"
#include "runtime/scheduler/mapping.hpp"
#include "runtime/scheduler/scheduler.hpp"
#include "runtime/session.hpp"

namespace apenet {

// One thread does everything: it steps the scheduler when no process runs, and while some run it serves what
// they need of the host (process manager, pipes, ends). Wall time decides here when to look, never what a
// process is told.
class RunLoop {
 public:
  RunLoop(Mapping& mapping, Scheduler& scheduler, const SessionOptions& options,
          const std::vector<RankProcess>& ranks, int launcher_id);
  ~RunLoop();
  RunLoop(const RunLoop&) = delete;
  RunLoop& operator=(const RunLoop&) = delete;

  // Until no process is left. Fills outcome, exit status, message and the ranks' ends.
  void run(SessionReport& report, const std::function<bool()>& interrupted);

 private:
  using WallClock = std::chrono::steady_clock;
  enum class Source : std::uint32_t { pmi, output, error, child };
  struct Failure {
    SessionReport::Outcome outcome;
    int exit_status;
    std::string message;
  };

  void add(int fd, Source source, std::size_t index);
  bool serve(int timeout_ms);
  void step();
  void begin_pinned();
  void on_idle();
  void wait_for_processes();
  void notice_busy();
  void pass_output();
  void look_around(const std::function<bool()>& interrupted);
  void notice_abort();
  void watch_attached();
  void on_child_end(std::size_t index);
  void on_rank_end(std::uint32_t rank, std::size_t child);
  void fail(SessionReport::Outcome outcome, int exit_status, std::string message);
  void terminate();
  [[nodiscard]] std::uint64_t activity_of_all() const;
  [[nodiscard]] bool may_have_threads_at_work() const;
  void judge(SessionReport& report) const;

  Mapping& mapping_;
  Scheduler& scheduler_;
  SessionOptions options_;
  std::uint32_t count_;
  PmiServer pmi_;
  Output output_;
  // [0, n) the ranks' processes; [n, 2n) those that attached for a rank, where another; [2n] the launcher.
  Children children_;
  int epoll_ = -1;
  std::optional<Affinity> affinity_;
  std::uint32_t speaker_ = 0;  // lowest rank that has not begun to wait since the last step
  bool all_finished_ = false;
  std::optional<Failure> failure_;
  std::optional<WallClock::time_point> give_up_at_;  // an early end: the others get a moment
  std::string give_up_message_;
  std::optional<WallClock::time_point> idle_since_;
  std::uint64_t idle_activity_ = 0;
  std::uint32_t idle_releases_ = 0;
  std::optional<WallClock::time_point> busy_since_;  // processes run since, and none has been woken
  bool busy_told_ = false;
  WallClock::time_point next_look_{};
};

}  // namespace apenet
