// ImageWatch: finds programs that ran without the shim, by the records of images (ipc/image_records.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "runtime/launch/session_options.hpp"
#include "runtime/scheduler/process_tree.hpp"
#include "runtime/scheduler/shared_memory.hpp"
#include "runtime/supervisor/notice.hpp"

namespace apenet {

// StrayWatch sees such a program while it runs, if it lives long enough; this class finds its records when it
// has ended. Nothing here depends on time.
class ImageWatch {
 public:
  ImageWatch(const SharedMemory& shared, const SessionOptions& options)
      : shared_(shared), unfollowed_(options.unfollowed), program_(options.program) {}

  // A process has ended that the supervisor has waited for: the leader of a rank, or an orphan.
  void note_end(const supervisor::Notice& notice, std::optional<std::uint32_t> leader_of);
  // Call at the end of a run that nothing has disturbed, before its last processes are killed: a process that
  // is gone without a mark was waited for by a system call, or by a program without the shim.
  void find_vanished(const ProcessTree& tree);
  // Call once all processes have ended: removes the semaphores and segments that processes of Python have
  // left.
  void remove_made() const;
  // Sets what is known of the programs that the ranks have started.
  void report(SessionReport& report) const;

 private:
  void note_raw(std::uint32_t rank, const ipc::ImageRecord& image, const std::string& became);

  const SharedMemory& shared_;
  std::string unfollowed_;
  std::string program_;
  std::map<std::uint32_t, std::string> raw_;       // by rank
  std::map<std::uint32_t, std::string> vanished_;  // likewise: less sure, because a signal may have ended it
  std::map<std::uint32_t, std::string> alone_;     // paths of unfollowed leaders that have started nothing
  std::set<std::uint32_t> ended_;                  // processes whose end the supervisor has reported
  bool has_strangers_ = false;                     // an orphan was never recorded
};

}  // namespace apenet
