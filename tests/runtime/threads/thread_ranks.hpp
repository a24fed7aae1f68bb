// Ranks that are threads of the test's process, under a complete Session. Both sides of the mapping lie at
// one address, so that a race detector sees the ranks' threads and the simulator together.
//
// The simulator watches and ends processes, so each rank has a stand-in process that waits until the rank's
// thread ends.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/fork_with_test.hpp"
#include "runtime/ipc/client.hpp"
#include "runtime/session.hpp"
#include "runtime/threads/connection.hpp"
#include "support/forbidden_memory.hpp"

namespace apenet::test {

// A rank that is a thread, and the descriptor to which it prints.
struct ThreadRank {
  ipc::Client& client;
  int output_fd;
};
using ThreadProgram = std::function<void(ThreadRank&)>;

// How virtual time begins: as in MPI_Init and MPI_Finalize, or by the program's own call.
enum class ThreadBegin { at_the_barrier, by_the_program };

// The address of the simulator's mapping.
inline std::byte* base_of(const Session& session) {
  struct stat status {};
  if (stat(session.mapping_path().c_str(), &status) != 0) std::abort();
  const std::string wanted = " " + std::to_string(status.st_ino) + " ";
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:apenet") == std::string::npos || line.find(wanted) == std::string::npos) continue;
    return reinterpret_cast<std::byte*>(std::stoull(line, nullptr, 16));  // NOLINT(performance-no-int-to-ptr)
  }
  std::abort();
}

// The process that the simulator watches for one rank, and this process's ends of its pipes.
struct StandIn {
  RankProcess process;
  int end_fd;     // closed when the rank has ended
  int output_fd;  // what the rank prints
};

inline StandIn stand_in() {
  int end[2];
  int out[2];
  if (pipe2(end, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) std::abort();
  const pid_t child = test::fork_with_test();
  if (child == 0) {
    setpgid(0, 0);
    dup2(end[0], 0);
    syscall(SYS_close_range, 3U, ~0U, 0U);  // pipes of other ranks must close when their ranks end
    char byte = 0;
    while (read(0, &byte, 1) > 0) continue;
    _exit(0);
  }
  close(end[0]);
  return {{.process_id = child, .pmi_fd = -1, .output_fd = out[0], .error_fd = -1}, end[1], out[1]};
}

// Never destroyed: transports live as long as their process and refer to their clients.
inline ipc::Client& lasting_client(std::byte* base, std::uint32_t rank) {
  static std::mutex mutex;
  static auto& clients = *new std::vector<std::unique_ptr<ipc::Client>>;
  const std::lock_guard<std::mutex> guard(mutex);
  return *clients.emplace_back(std::make_unique<ipc::Client>(base, rank));
}

// Runs one program per rank. If the run does not complete, ends the test's process, because threads that wait
// for it cannot be ended.
inline SessionReport run_thread_ranks(const MachineDescription& machine,
                                      const std::vector<ThreadProgram>& programs, SessionOptions options = {},
                                      ThreadBegin begin = ThreadBegin::at_the_barrier) {
  static const int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (options.output_fd == 1) options.output_fd = sink;
  options.cores = CoreUse::all;
  std::vector<NodeId> nodes;
  for (std::uint32_t rank = 0; rank < programs.size(); ++rank) nodes.push_back(rank);
  Session session(machine, {{nodes, options}});
  setenv(ipc::mapping_variable, session.mapping_path().c_str(), 1);
  std::byte* const base = base_of(session);
  std::vector<StandIn> stand_ins;
  for (std::size_t rank = 0; rank < programs.size(); ++rank) stand_ins.push_back(stand_in());
  std::vector<RankProcess> processes;
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < programs.size(); ++rank) {
    processes.push_back(stand_ins[rank].process);
    threads.emplace_back([&, rank] {
      ThreadRank self{lasting_client(base, rank), stand_ins[rank].output_fd};
      ipc::Identity& identity = self.client.block().identity;
      identity.process_id = static_cast<std::uint32_t>(stand_ins[rank].process.process_id);
      identity.used_network = 1;
      if (begin == ThreadBegin::at_the_barrier) self.client.start();
      programs[rank](self);
      if (begin == ThreadBegin::at_the_barrier) self.client.finish();
      close(stand_ins[rank].output_fd);
      close(stand_ins[rank].end_fd);
    });
  }
  SessionReport report;
  std::thread simulator([&] {
    forbid_the_memory_of_others();  // a stand-in's memory is not that of its rank
    report = session.run({{processes}}, [] { return false; }).front();
  });
  simulator.join();
  if (report.outcome != SessionReport::Outcome::completed) {
    std::fprintf(stderr, "the run did not complete: %s\n", report.message.c_str());
    std::abort();
  }
  for (std::thread& thread : threads) thread.join();
  unsetenv(ipc::mapping_variable);
  return report;
}

}  // namespace apenet::test
