// What a thread of the simulated program does in the host, as /proc tells it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace apenet {

struct ThreadState {
  char state = 'S';           // as in /proc/PID/stat: R runs, S sleeps, D waits for a disk, Z is gone
  std::uint64_t used_ns = 0;  // of the processor
  std::string name;
};

// None: it has ended.
[[nodiscard]] std::optional<ThreadState> thread_state(int process_id, int thread_id);

// The system call in which a thread sleeps; number is -1 where that is not known, or it is in none.
struct SystemCall {
  long number = -1;
  std::array<std::uint64_t, 6> arguments{};
};
[[nodiscard]] SystemCall system_call(int process_id, int thread_id);

// Two equal pulses of a thread that sleeps: it has not run between them. None: it has ended, or the host does
// not tell.
struct Pulse {
  char state = 'S';
  std::uint64_t switches = 0;  // between threads, of its own will or not
  bool operator==(const Pulse&) const = default;
};
[[nodiscard]] std::optional<Pulse> pulse_of(int process_id, int thread_id);

// What a thread waits for that another rank may do: "a socket", "a pipe or fifo", "shared memory", "sockets
// or pipes". Empty: anything else, or what only comes from outside, as standard input does.
[[nodiscard]] std::string meeting_point(int process_id, int thread_id, const SystemCall& call);

// A wait for another thread, without an end of its own.
[[nodiscard]] bool waits_for_thread(const SystemCall& call);

// A wait that ends by itself, at a time.
[[nodiscard]] bool has_time_limit(const SystemCall& call);

[[nodiscard]] std::vector<int> threads_of(int process_id);

struct HostProcess {
  int process_id = 0;
  int parent_id = 0;
  int group_id = 0;
};
[[nodiscard]] std::vector<HostProcess> host_processes();

// Each process that belongs to a rank, with the rank: the rank's own, what that has started, and the group
// that it leads. 0: the rank has none.
[[nodiscard]] std::map<int, std::uint32_t> families(const std::vector<int>& rank_processes);

// What the thread waits for, to follow "it": "reads from the fifo /tmp/x, which rank 2 has open", "waits for
// a process that it has started: sleep". The ranks' processes tell who holds the other end; 0: not known.
[[nodiscard]] std::string describe_wait(int process_id, int thread_id,
                                        const std::vector<int>& rank_processes);

// What a rank does that does not wait in the simulator: "computes", or as describe_wait.
[[nodiscard]] std::string describe_work(const std::vector<int>& rank_processes, std::uint32_t rank);

}  // namespace apenet
