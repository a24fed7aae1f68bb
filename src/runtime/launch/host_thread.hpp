// Reports what a thread of the simulated program does in the host, according to /proc.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ipc/system_call.hpp"

namespace apenet {

struct ThreadState {
  char state = 'S';  // as in /proc/PID/stat: R running, S sleeping, D waiting for a disk, T stopped, Z zombie
  std::uint64_t used_ns = 0;  // CPU time used
  std::string name;
};

// Returns nothing if the thread has ended.
[[nodiscard]] std::optional<ThreadState> thread_state(int process_id, int thread_id);

// The time that a thread has run or waited for a processor; 0 if it has ended or the host does not tell.
[[nodiscard]] std::chrono::nanoseconds runnable_time(int process_id, int thread_id);

using ipc::has_time_limit;
using ipc::SystemCall;
using ipc::waits_for_thread;

[[nodiscard]] SystemCall system_call(int process_id, int thread_id);

// The process that traces this one (strace, a debugger); 0 if none does.
[[nodiscard]] int tracer_of(int process_id);

// The process of a thread; 0 if that has ended.
[[nodiscard]] int process_of(int thread_id);

// The activity counters of a thread. Two equal pulses of a sleeping thread mean that it has not run between
// them. pulse_of() returns nothing if the thread has ended or the host does not tell.
struct Pulse {
  char state = 'S';
  std::uint64_t waits = 0;        // voluntary context switches
  std::uint64_t preemptions = 0;  // involuntary ones
  bool operator==(const Pulse&) const = default;
};
[[nodiscard]] std::optional<Pulse> pulse_of(int process_id, int thread_id);

// Returns what a thread waits for if another rank may supply it: "a socket", "a pipe or fifo", "shared
// memory" or "sockets or pipes". Returns an empty string for any other wait, including standard input.
[[nodiscard]] std::string meeting_point(int process_id, int thread_id, const SystemCall& call);

// Ordered as the process has started them, unless their numbers have wrapped.
[[nodiscard]] std::vector<int> threads_of(int process_id);

[[nodiscard]] std::vector<int> open_descriptors(int process_id);

// Addresses from `begin` up to but not including `end`.
struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
// Returns the address ranges at which a process has mapped `file`, as named in /proc/PID/maps.
[[nodiscard]] std::vector<AddressRange> mapped_ranges(int process_id, std::string_view file);

// The file that a process has mapped at an address to share it, as named in /proc/PID/maps; empty if none.
[[nodiscard]] std::string shared_file_at(int process_id, std::uint64_t address);

// The running children of all threads of a process.
[[nodiscard]] std::vector<int> children_of(int process_id);

// A file of /proc/PID; empty if it cannot be read.
[[nodiscard]] std::string process_file(int process_id, const std::string& name);

struct HostProcess {
  int process_id = 0;
  int parent_id = 0;
  int group_id = 0;
  char state = '?';            // as in /proc/PID/stat
  std::int64_t cpu_ticks = 0;  // sum over all threads, in user and system mode
};
[[nodiscard]] std::vector<HostProcess> host_processes();

// The descendants of a process that do nothing but wait for processes that they have started.
[[nodiscard]] std::set<int> waiting_parents(int root);

// Maps each process that belongs to a rank to that rank: the rank's process, its descendants, and the members
// of its process group. In rank_processes, 0 means that the rank has no process.
[[nodiscard]] std::map<int, std::uint32_t> families(const std::vector<int>& rank_processes);

}  // namespace apenet
