// FailureWatch: notices how ranks fail: by an abort, by their end, or by invalid data.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/launch/failures.hpp"
#include "runtime/launch/pmi_server.hpp"
#include "runtime/launch/rank_processes.hpp"
#include "runtime/scheduler/rank_error.hpp"
#include "runtime/scheduler/rank_table.hpp"
#include "runtime/scheduler/shared_memory.hpp"

namespace apenet {

// Ignores the ranks that the simulator ends itself.
class FailureWatch {
 public:
  FailureWatch(SharedMemory& shared, const RankTable& ranks, const PmiServer& pmi, std::uint32_t count)
      : shared_(shared), ranks_(ranks), pmi_(pmi), count_(count), excused_(count) {}

  void note(const RankError& error);
  // Call when the rank's MPI process has ended.
  void note_end(std::uint32_t rank, const RankProcesses& processes);
  // Notices the ranks that have told the process manager of an abort.
  void notice_aborts();
  // The same for a rank that has ended, and wrote it into its block.
  void notice_abort(std::uint32_t rank);
  // Notices whether a process of the rank has refused to go on. printed: what it has said of that.
  bool notice_refusal(std::uint32_t rank, const std::string& printed);
  // Notices the ranks that have ended without MPI, once another rank uses it and would wait for them.
  void notice_strangers();
  // From now on the simulator ends this rank itself.
  void excuse(std::uint32_t rank) { excused_[rank] = true; }
  [[nodiscard]] bool is_excused(std::uint32_t rank) const { return excused_[rank]; }
  // The ranks that failed in ways that the library's own launcher lets pass, if nothing else went wrong: no
  // other failure, and no rank that the simulator has ended.
  [[nodiscard]] std::vector<std::uint32_t> passing() const;
  [[nodiscard]] const Failures& failures() const { return failures_; }

 private:
  void add_abort(std::uint32_t rank, int exit_code);

  SharedMemory& shared_;
  const RankTable& ranks_;
  const PmiServer& pmi_;
  std::uint32_t count_;
  Failures failures_;
  std::vector<std::uint32_t> strangers_;  // ranks that exited with status 0 without using MPI
  std::vector<bool> excused_;
};

}  // namespace apenet
