// HostWaits: who can end the waits of the program's threads in the host.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/launch/host_thread.hpp"
#include "runtime/launch/open_files.hpp"

namespace apenet {

// Whether a file of code is the C library.
[[nodiscard]] bool is_c_library(const std::string& file);

// Whether the thread runs no code of the program: on its stack are only the MPI library, what that library
// uses, and the C library. Unknown while it runs, because its stack is known only where it waits in a system
// call, and before it has entered code of either.
[[nodiscard]] std::optional<bool> is_library_thread(int process_id, int thread_id);

// Remembers which threads these are. One of which nothing is known yet counts as a thread of the program, and
// is examined again the next time.
class LibraryThreads {
 public:
  [[nodiscard]] bool contains(int process_id, int thread_id);

 private:
  std::map<std::pair<int, int>, bool> known_;  // by process and thread
};

// The descriptors that an epoll descriptor watches.
[[nodiscard]] std::vector<int> watched_by_epoll(int process_id, std::uint64_t epoll);

// The signals for which a call waits other than for one that is handled: those of sigwait(). One bit each.
[[nodiscard]] std::uint64_t awaited_signals(int process_id, const SystemCall& call);
// The same of a signalfd.
[[nodiscard]] std::uint64_t awaited_signals(int process_id, std::uint64_t signalfd);

// Valid as long as no thread of the run runs: reads the files that processes have open only once.
class HostWaits {
 public:
  // What the host does not show of a rank.
  struct Queries {
    // Whether it waits in the barrier of the simulator's process manager, which only the other ranks can end.
    std::function<bool(std::uint32_t rank)> waits_for_others;
    // When a timer of alarm() rings, as in ipc::ImageRecord. rank: of a process that is one.
    std::function<std::int64_t(int process_id, std::optional<std::uint32_t> rank)> alarm_ns;
    // Processes of the run that do nothing but wait for others of the run. A wrapper around a rank's program
    // keeps what it holds until that program ends.
    std::function<std::set<int>()> waiting_parents;
  };

  // family: the processes of the run, with the rank of each; the launcher's have the number of ranks.
  HostWaits(std::vector<int> rank_processes, std::map<int, std::uint32_t> family, Queries queries);

  // Who can end the wait of a thread that sleeps or has been stopped.
  [[nodiscard]] WaitEnd end_of(int process_id, int thread_id);
  // The same of a wait with a time limit, as if it had none.
  [[nodiscard]] WaitEnd end_by_others(int process_id, int thread_id);
  // Whether a signal of a timer may interrupt the waits of the process.
  [[nodiscard]] bool has_timer(int process_id) const;

 private:
  [[nodiscard]] WaitEnd end_of_stop(int process_id, char state) const;
  [[nodiscard]] WaitEnd end_of_call(int process_id, const SystemCall& call);
  [[nodiscard]] WaitEnd end_of_signal(int process_id, std::uint64_t awaited) const;
  [[nodiscard]] WaitEnd end_of_copy(int process_id, std::uint64_t from, std::uint64_t to);
  [[nodiscard]] WaitEnd end_of_open(int process_id, std::uint64_t folder, std::uint64_t path) const;
  [[nodiscard]] WaitEnd end_of_connect(int process_id, const SystemCall& call);
  [[nodiscard]] WaitEnd end_of_futex(int process_id, const SystemCall& call) const;
  [[nodiscard]] WaitEnd end_of_word(int process_id, std::uint64_t word, bool is_private) const;
  [[nodiscard]] WaitEnd end_of_futexes(int process_id, const SystemCall& call) const;
  [[nodiscard]] WaitEnd end_of_read(int process_id, std::uint64_t fd);
  [[nodiscard]] WaitEnd end_of_poll(int process_id, std::uint64_t address, std::uint64_t count);
  [[nodiscard]] WaitEnd end_of_select(int process_id, const SystemCall& call);
  [[nodiscard]] WaitEnd end_of_epoll(int process_id, std::uint64_t epoll);
  [[nodiscard]] WaitEnd end_of_child(int process_id) const;
  // The rank whose own process this is.
  [[nodiscard]] std::optional<std::uint32_t> rank_of(int process_id) const;

  std::vector<int> rank_processes_;
  std::map<int, std::uint32_t> family_;
  Queries queries_;
  OpenFiles files_;
};

}  // namespace apenet
