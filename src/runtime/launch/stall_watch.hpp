// StallWatch: detects threads that still work in the host while all ranks wait in the simulator.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/launch/host_thread.hpp"

namespace apenet {

// Examines the threads of the ranks' processes, of their descendants and of their process groups. Compares
// two looks, between which the simulator wakes no rank, to find out which thread used the processor.
//
// Between two such pairs the ranks are released for a moment, and a thread that waits in the simulation gives
// up its library's lock. On a loaded host, a thread behind that lock may miss this moment. So its sleep
// proves nothing until it has been seen in the simulation itself, or has tried often.
class StallWatch {
 public:
  enum class Finding : std::uint8_t {
    works,     // a thread runs, waits for a disk, or has used the processor
    contends,  // a thread is behind a lock of its process, and has tried to get it since the last look
    sleeps,    // a thread is in a wait with a time limit, and has been in it since the watch began
    may_wake,  // a thread waits for an outside event, or repeatedly for a limited time
    asleep,    // all threads wait for each other: no wait ends by itself
  };
  struct Thread {
    int process_id = 0;
    int thread_id = 0;
    std::string name;
    std::uint32_t rank = 0;  // the rank whose process it is, or whose process started it
    Finding finding = Finding::asleep;
  };

  // Call when a rank has acted: discards what the threads did before.
  void forget();
  // The processes of the ranks; 0 means unknown.
  void begin(const std::vector<int>& process_ids);
  // Call some time after begin().
  Finding end();

  // The threads of the last look that are not asleep, sorted by finding (working ones first), then by rank.
  [[nodiscard]] const std::vector<Thread>& threads() const { return threads_; }

 private:
  struct Task {
    Thread thread;
    std::uint64_t used_ns = 0;  // CPU time
  };
  [[nodiscard]] std::map<int, Task> look() const;
  [[nodiscard]] bool contends(const Thread& thread, std::uint64_t used_ns);
  [[nodiscard]] bool is_in_simulation(const Thread& thread);

  std::vector<int> process_ids_;
  std::map<int, Task> before_;
  std::int64_t began_ns_ = 0;
  std::map<int, std::uint64_t> first_used_ns_;           // CPU time of each thread when the watch began
  std::map<int, std::uint64_t> last_used_ns_;            // ... and at the end of the last look
  std::map<int, std::uint32_t> tries_;                   // looks at which a thread had tried to get a lock
  std::set<int> came_;                                   // threads that have been seen in the simulation
  std::map<int, std::vector<AddressRange>> simulation_;  // where processes have mapped it
  std::vector<Thread> threads_;
};

}  // namespace apenet
