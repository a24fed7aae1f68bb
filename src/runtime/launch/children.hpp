// Children: the processes of a run: their ends, and their termination.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/launch/session_facts.hpp"

namespace apenet {

// Learns of ends beside the pipes: by pidfd of the caller's own children, from the warden of those that it
// has started. Others (what a rank's script has started, mpirun's) are seen to end; their status stays with
// their parent.
class Children {
 public:
  // warden_fd: the channel of the warden that started all watched processes, which stays the caller's; -1 for
  // none.
  Children(std::size_t count, int warden_fd) : children_(count), warden_fd_(warden_fd) {}
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // A process that the caller or its warden has started. Returns a descriptor that becomes readable when it
  // ends; -1 when it is already gone, or when the warden will tell.
  int watch(std::size_t index, int process_id);
  // A process that somebody else has started; the same otherwise.
  int watch_foreign(std::size_t index, int process_id);
  // The warden is gone: the same for what it would have told of; -1 for others.
  int watch_without_warden(std::size_t index);
  [[nodiscard]] bool watched(std::size_t index) const { return children_[index].process_id != 0; }
  [[nodiscard]] bool is(std::size_t index, int process_id) const {
    return children_[index].process_id == process_id;
  }
  [[nodiscard]] int process_id(std::size_t index) const { return children_[index].process_id; }
  // The descriptor is readable: takes the exit status.
  void reap(std::size_t index);
  // Somebody who knows tells the exit status, as a shell has it: the process counts as ended.
  void tell_end(std::size_t index, int status);
  // The channel is readable: the processes of whose end it tells, in the order of their ends.
  [[nodiscard]] std::vector<std::size_t> hear_warden();
  // Its channel is open.
  [[nodiscard]] bool has_warden() const { return warden_fd_ >= 0; }
  [[nodiscard]] bool ended(std::size_t index) const { return children_[index].ended; }
  // Whether the first ones have ended, as many as are said.
  [[nodiscard]] bool ended_all(std::size_t count) const;
  [[nodiscard]] RankReport::End end(std::size_t index) const { return children_[index].end; }
  [[nodiscard]] int status(std::size_t index) const { return children_[index].status; }
  [[nodiscard]] std::size_t alive() const;
  // To every process group that is left.
  void signal_all(int signal) const;
  // Kills everything that is left of the run. The warden then closes its channel when nothing is.
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
