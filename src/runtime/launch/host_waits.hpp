// HostWaits: who can end the waits of the program's threads in the host.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/launch/host_thread.hpp"
#include "runtime/launch/open_files.hpp"

namespace apenet {

// Whether a file of code is the C library.
[[nodiscard]] bool is_c_library(const std::string& file);

// Whether a file of code is an MPI library, the C library, or something else that only an MPI library uses.
[[nodiscard]] bool is_mpi_library(const std::string& file);

// Whether the thread runs no code of the program: on its stack are only the MPI library, what that library
// uses, and the C library.
[[nodiscard]] bool is_library_thread(int process_id, int thread_id);

// The descriptors that an epoll descriptor watches.
[[nodiscard]] std::vector<int> watched_by_epoll(int process_id, std::uint64_t epoll);

// Valid as long as no thread of the run runs: looks at the files that processes have open only once.
class HostWaits {
 public:
  // family: the processes of the run, with the rank of each; the launcher's have the number of ranks.
  // in_barrier: whether a rank waits in the barrier of the simulator's process manager, which only the other
  // ranks can end.
  HostWaits(const std::vector<int>& rank_processes, std::map<int, std::uint32_t> family,
            std::function<bool(std::uint32_t rank)> in_barrier);

  // Who can end the wait of a thread that sleeps.
  [[nodiscard]] WaitEnd end_of(int process_id, int thread_id);

 private:
  [[nodiscard]] WaitEnd end_of_futex(int process_id, const SystemCall& call) const;
  [[nodiscard]] WaitEnd end_of_read(int process_id, std::uint64_t fd);
  [[nodiscard]] WaitEnd end_of_poll(int process_id, std::uint64_t address, std::uint64_t count);
  [[nodiscard]] WaitEnd end_of_select(int process_id, const SystemCall& call);
  [[nodiscard]] WaitEnd end_of_epoll(int process_id, std::uint64_t epoll);
  [[nodiscard]] WaitEnd end_of_child(int process_id) const;

  std::map<int, std::uint32_t> family_;
  std::uint32_t rank_count_;
  std::function<bool(std::uint32_t rank)> in_barrier_;
  OpenFiles files_;
};

}  // namespace apenet
