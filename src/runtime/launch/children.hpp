// Children: the processes of a run, how they end and how they are killed.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/launch/session_facts.hpp"

namespace apenet {

// Detects process ends independently of the pipes: by pidfd for the caller's own children, by notices of the
// warden for the processes it started. For processes started by others (a rank's script, mpirun) only the end
// is detected; their exit status goes to their parent.
class Children {
 public:
  // warden_fd: the channel to the warden that started all watched processes, or -1 for none. The caller keeps
  // ownership.
  Children(std::size_t count, int warden_fd) : children_(count), warden_fd_(warden_fd) {}
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // Watches a process that the caller or its warden started. Returns a descriptor that becomes readable when
  // the process ends; -1 if it has already ended or if the warden reports its end.
  int watch(std::size_t index, int process_id);
  // Like watch(), for a process that neither the caller nor the warden started.
  int watch_foreign(std::size_t index, int process_id);
  // Call when the warden has ended: watches a process whose end the warden would have reported. Returns -1
  // for all other processes.
  int watch_without_warden(std::size_t index);
  [[nodiscard]] bool watched(std::size_t index) const { return children_[index].process_id != 0; }
  [[nodiscard]] bool is(std::size_t index, int process_id) const {
    return children_[index].process_id == process_id;
  }
  [[nodiscard]] int process_id(std::size_t index) const { return children_[index].process_id; }
  // Call when the descriptor is readable: records the exit status.
  void reap(std::size_t index);
  // Records an exit status in shell form (128 + signal) reported by a third party; the process counts as
  // ended.
  void tell_end(std::size_t index, int status);
  // Call when the channel is readable. Returns the processes whose end the warden reports, in the order of
  // their ends.
  [[nodiscard]] std::vector<std::size_t> hear_warden();
  // The channel to the warden is open.
  [[nodiscard]] bool has_warden() const { return warden_fd_ >= 0; }
  [[nodiscard]] bool ended(std::size_t index) const { return children_[index].ended; }
  // Whether the first `count` processes have all ended.
  [[nodiscard]] bool ended_all(std::size_t count) const;
  [[nodiscard]] RankReport::End end(std::size_t index) const { return children_[index].end; }
  [[nodiscard]] int status(std::size_t index) const { return children_[index].status; }
  [[nodiscard]] std::size_t alive() const;
  // Sends the signal to every process group of the run.
  void signal_all(int signal) const;
  // Kills all remaining processes of the run. The warden closes its channel when none is left.
  void kill_all();
  [[nodiscard]] bool is_killed() const { return is_killed_; }

 private:
  struct Child {
    int process_id = 0;
    int pidfd = -1;
    bool ended = false;
    RankReport::End end = RankReport::End::running;
    int status = 0;
  };
  void note_end(Child& child, int wait_status);

  std::vector<Child> children_;
  int warden_fd_;
  bool is_killed_ = false;
};

}  // namespace apenet
