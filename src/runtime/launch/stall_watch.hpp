// StallWatch: detects threads that still work in the host while all ranks wait in the simulator.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/launch/host_thread.hpp"
#include "runtime/launch/host_waits.hpp"

namespace apenet {

// Examines the threads of the ranks' processes, of their descendants and of their process groups. Compares
// two checks, begin() and end(), to find out which threads used the processor. The simulator wakes no rank
// between the two checks of a pair.
//
// Between two pairs of checks the simulator releases the ranks for a moment. A thread that waits in the
// simulation then gives up the lock of its MPI library, and another thread may take it. On a loaded host the
// other thread may run too late to get the lock. A sleeping thread that has run since the last check
// therefore counts as blocked only after it has been seen waiting in the simulation, or after many such
// checks.
class StallWatch {
 public:
  enum class Finding : std::uint8_t {
    works,     // a thread runs, waits for a disk, has used the processor, or somebody has stopped it
    contends,  // a thread waits for another one, and has run since the last check (tries to get a lock)
    sleeps,    // a thread is in a wait with a time limit, and has been in it since the watch began
    may_wake,  // a thread waits for an outside event, or repeatedly for a limited time; the MPI library's own
               // threads do the latter for as long as the process lives
    blocked,   // all threads wait for each other: no wait ends by itself
  };
  struct Thread {
    int process_id = 0;
    int thread_id = 0;
    std::string name;
    std::uint32_t rank = 0;  // the rank whose process it is, or whose process started it
    Finding finding = Finding::blocked;
  };

  // Call when a rank has acted: discards what the threads did before.
  void forget();
  // The processes of the ranks; 0 means unknown. suspended: ranks that do not wait in the simulation. Threads
  // of the others that sleep in virtual time do not wake. Those of suspended ranks sleep in parts.
  void begin(const std::vector<int>& process_ids, std::vector<std::uint32_t> suspended = {});
  // Call some time after begin().
  Finding end();

  // The threads of the last check that are not blocked, sorted by finding (working ones first), then by rank.
  [[nodiscard]] const std::vector<Thread>& threads() const { return threads_; }

 private:
  struct Span {  // span of CPU time
    std::int64_t since_ns = 0;
    std::uint64_t used_ns = 0;
    bool worked = true;  // in the span before; true if there is none
  };
  struct Task {
    Thread thread;
    std::uint64_t used_ns = 0;  // CPU time
    char state = 'S';
  };
  [[nodiscard]] std::map<int, Task> read_tasks() const;
  [[nodiscard]] bool is_stopped_by_run(int process_id, char state,
                                       const std::map<int, std::uint32_t>& family) const;
  // used_ns: CPU time of the thread. uses_now: it has had this share since begin().
  [[nodiscard]] bool uses_processor(int thread_id, std::uint64_t used_ns, std::int64_t share_per_mille,
                                    bool uses_now);
  // For a thread that is found running or ready to run. Call uses_processor() before.
  [[nodiscard]] bool only_checks(const Thread& thread);
  [[nodiscard]] bool contends(const Thread& thread, std::uint64_t used_ns);
  [[nodiscard]] bool is_in_simulation(const Thread& thread);

  std::vector<int> process_ids_;
  std::vector<std::uint32_t> suspended_;
  std::map<int, Task> before_;
  std::int64_t began_ns_ = 0;
  std::map<int, Span> spans_;                            // the last second of each thread
  std::map<int, std::uint64_t> first_used_ns_;           // CPU time of each thread when first seen
  std::map<int, std::uint64_t> last_used_ns_;            // ... and at the last call of end()
  std::map<int, std::uint64_t> waits_;                   // Pulse::waits of threads that were found running
  std::map<int, std::uint32_t> tries_;                   // how often each thread was found to contend
  std::set<int> came_;                                   // threads seen waiting in the simulation
  std::map<int, std::vector<AddressRange>> simulation_;  // each process's mappings of its shared memory
  LibraryThreads library_threads_;
  std::vector<Thread> threads_;
};

}  // namespace apenet
