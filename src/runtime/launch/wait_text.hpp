// Describes what threads of the program wait for in the host.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/launch/source_lines.hpp"

namespace apenet {

// A predicate: "reads from the fifo /tmp/x, which rank 2 has open" or "waits in pthread_join for thread 2
// (exchange.c:40)". Searches rank_processes for the holder of the other end; 0 means unknown.
[[nodiscard]] std::string describe_wait(int process_id, int thread_id, const std::vector<int>& rank_processes,
                                        SourceLines& lines);

// What a rank does that does not wait in the simulator: "computes", or the text of describe_wait().
[[nodiscard]] std::string describe_work(const std::vector<int>& rank_processes, std::uint32_t rank,
                                        SourceLines& lines);

// "exchange.c:12", where the program makes an MPI call; empty if it is not known. caller, frame: see
// ipc::CallNote.
[[nodiscard]] std::string place_of_call(int process_id, std::uint64_t caller, std::uint64_t frame,
                                        SourceLines& lines);

// A line for each thread of these ranks and of the processes that they have started, except for threads of
// the MPI library. Equal lines are merged. family: all processes of the run, with the rank of each.
[[nodiscard]] std::string describe_threads(const std::vector<std::uint32_t>& ranks,
                                           const std::vector<int>& rank_processes,
                                           const std::map<int, std::uint32_t>& family, SourceLines& lines);

}  // namespace apenet
