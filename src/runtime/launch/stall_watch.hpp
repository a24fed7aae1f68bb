// StallWatch: while all ranks wait in the simulator, does anything of theirs still work in the host?
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace apenet {

// Looks at the threads of the ranks' processes, of what these have started, and of their process groups. Two
// looks with time between, in which the simulator wakes nobody, tell who used the processor.
class StallWatch {
 public:
  enum class Finding : std::uint8_t {
    works,     // a thread runs, waits for a disk, or has used the processor
    sleeps,    // one is in a wait with a time limit, still the one in which it was when the watch began
    may_wake,  // one waits for what may come from outside, or for a time, again and again
    asleep,    // all wait for each other: nothing of this ever ends by itself
  };
  struct Thread {
    int process_id = 0;
    int thread_id = 0;
    std::string name;
    std::uint32_t rank = 0;  // whose process it is, or has started it
    Finding finding = Finding::asleep;
  };

  // Something has moved: what threads did before says nothing any more.
  void forget() { first_used_ns_.clear(); }
  // The processes of the ranks; 0: none is known.
  void begin(const std::vector<int>& process_ids);
  // After `begin`, and some time.
  Finding end();

  // Of the last look, those that are not asleep; those that work first, in the order of ranks.
  [[nodiscard]] const std::vector<Thread>& threads() const { return threads_; }

 private:
  struct Task {
    Thread thread;
    std::uint64_t used_ns = 0;  // of the processor
  };
  [[nodiscard]] std::map<int, Task> look() const;

  std::vector<int> process_ids_;
  std::map<int, Task> before_;
  std::int64_t began_ns_ = 0;
  std::map<int, std::uint64_t> first_used_ns_;  // of the processor, by thread, when the watch began
  std::vector<Thread> threads_;
};

}  // namespace apenet
