// Ranks for tests: forked processes that talk to the simulator directly, without MPI.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/fork_with_test.hpp"
#include "runtime/ipc/client.hpp"
#include "runtime/session.hpp"
#include "support/machines.hpp"

namespace apenet::test {

// What a rank does between the start of virtual time and its end.
using RankProgram = std::function<void(ipc::Client&)>;

// How virtual time begins: as in MPI_Init, also of a program that a script has started, or by the program's
// own call.
enum class Begin { at_the_barrier, behind_a_script, by_the_program };

// Leaves the simulation as MPI_Finalize would.
inline void leave(ipc::Client& client) {
  client.finish();
}

// A fork inherits the simulator's fully writable view of the mapping, which a separately started rank does
// not have. Unmaps it.
inline void drop_inherited_mappings() {
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:apenet") == std::string::npos) continue;
    const std::size_t dash = line.find('-');
    ranges.emplace_back(std::stoull(line, nullptr, 16), std::stoull(line.substr(dash + 1), nullptr, 16));
  }
  for (const auto& [begin, end] : ranges)
    munmap(reinterpret_cast<void*>(begin), end - begin);  // NOLINT(performance-no-int-to-ptr)
}

// The descriptor of the parts, opened as any process of the user may.
inline int open_parts(const std::string& header_path, const ipc::Header& header) {
  const std::string folder = header_path.substr(0, header_path.rfind('/') + 1);
  return open((folder + std::to_string(header.parts_fd)).c_str(), O_RDWR | O_CLOEXEC);
}

inline RankProcess fork_rank(const Session& session, std::uint32_t rank, const RankProgram& program,
                             Begin begin, std::size_t job = 0) {
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) std::abort();
  const std::string path = session.mapping_path(job);
  std::fflush(nullptr);  // what the test has not written yet, the rank would write, too
  const pid_t child = test::fork_with_test();
  if (child == 0) {
    setpgid(0, 0);
    if (begin == Begin::behind_a_script && test::fork_with_test() != 0) {
      wait(nullptr);
      _exit(0);
    }
    drop_inherited_mappings();
    dup2(out[1], 1);
    dup2(err[1], 2);
    setenv(ipc::mapping_variable, path.c_str(), 1);
    setenv(ipc::rank_variable, std::to_string(rank).c_str(), 1);
    ipc::Client* client = ipc::Client::instance();
    if (begin != Begin::by_the_program) {
      client->block().identity.used_network = 1;
      client->start();
    }
    program(*client);
    std::fflush(stdout);
    _exit(0);
  }
  close(out[1]);
  close(err[1]);
  return {.process_id = child, .pmi_fd = -1, .output_fd = out[0], .error_fd = err[0]};
}

struct Ran {
  SessionReport report;
  std::string output;
};

// Runs one program per rank, placed linearly, and collects what they print.
inline Ran run_ranks(
    const MachineDescription& machine, const std::vector<RankProgram>& programs, SessionOptions options = {},
    const std::function<bool()>& interrupted = [] { return false; }, Begin begin = Begin::at_the_barrier) {
  int sink[2];
  if (pipe2(sink, O_CLOEXEC) != 0) std::abort();
  fcntl(sink[1], F_SETPIPE_SZ, 1 << 20);
  if (options.output_fd == 1) options.output_fd = options.error_fd = sink[1];
  options.deadlock_wait_ms = 100;
  std::vector<NodeId> nodes;
  for (std::uint32_t rank = 0; rank < programs.size(); ++rank) nodes.push_back(rank);
  Session session(machine, {{nodes, options}});
  std::vector<RankProcess> ranks;
  for (std::uint32_t rank = 0; rank < programs.size(); ++rank)
    ranks.push_back(fork_rank(session, rank, programs[rank], begin));
  Ran ran{session.run({{ranks}}, interrupted).front(), {}};
  close(sink[1]);
  char buffer[4096];
  for (ssize_t count = read(sink[0], buffer, sizeof buffer); count > 0;
       count = read(sink[0], buffer, sizeof buffer)) {
    ran.output.append(buffer, static_cast<std::size_t>(count));
  }
  close(sink[0]);
  return ran;
}

// Sends a small message that contains one word.
inline void send_word(ipc::Client& client, std::uint32_t target, std::uint64_t word) {
  ipc::Request request;
  request.target = target;
  request.bytes = sizeof word;
  request.inline_length = sizeof word;
  std::memcpy(request.inline_data, &word, sizeof word);
  client.post(request);
}

// Waits for the next event of this kind and drops others.
inline ipc::Event await(ipc::Client& client, ipc::EventKind kind) {
  for (;;) {
    const ipc::Event* event = client.poll();
    if (event == nullptr) continue;
    const ipc::Event copy = *event;
    client.pop();
    if (copy.kind == kind) return copy;
  }
}

inline std::uint64_t receive_word(ipc::Client& client) {
  const ipc::Event event = await(client, ipc::EventKind::arrived);
  std::uint64_t word = 0;
  std::memcpy(&word, event.inline_data, sizeof word);
  return word;
}

}  // namespace apenet::test
