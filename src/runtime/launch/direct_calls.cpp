#include "runtime/launch/direct_calls.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "runtime/scheduler/rank_names.hpp"
#include "runtime/scheduler/request_validation.hpp"

namespace apenet {
namespace {

constexpr auto uncaught_kinds = static_cast<std::uint32_t>(ipc::UncaughtCall::count);

// What comes after the name of the rank and, but for the last three, of the object.
constexpr std::array<std::string_view, uncaught_kinds> reasons{
    " makes system calls itself, which this host does not let the simulator catch "
    "(prctl(PR_SET_SYSCALL_USER_DISPATCH), Linux 5.11 or later on x86-64): its clocks, sleeps and waits are "
    "the host's",
    " makes system calls itself, and this host does not let the simulator change the kernel's code for "
    "clocks in "
    "the process (mprotect of the vDSO): the clocks that it reads there are the host's",
    " starts threads by the system call clone: their clocks, sleeps and waits are the host's. Threads of "
    "pthread_create have virtual time",
    " starts processes by system calls of its own: their clocks and sleeps are the host's, and a wait for "
    "them takes no virtual time. Those of fork, posix_spawn and system of the program's C library have it",
    "io_uring_setup was refused (ENOSYS): requests in a ring have no virtual time. Expected a program that "
    "can do "
    "without, by poll, epoll or threads",
    "the program asked for prctl(PR_SET_SYSCALL_USER_DISPATCH), which the simulator uses for programs that "
    "make "
    "system calls themselves: calls that either of them catches may have the host's time",
    "the program loads a library with a C library of its own by dlmopen(), which this host's loader (glibc "
    "before 2.35) does not show: its clocks, sleeps and locks are the host's"};

constexpr bool names_object(std::uint32_t kind) {
  return kind < static_cast<std::uint32_t>(ipc::UncaughtCall::rings);
}

}  // namespace

std::vector<std::string> direct_call_warnings(const RankTable& table) {
  std::map<std::pair<std::uint32_t, std::string>, std::vector<std::uint32_t>> ranks_of;  // by kind and object
  for (std::uint32_t rank = 0; rank < table.size(); ++rank) {
    const ipc::DirectNote& note = table.direct(rank);
    const std::uint32_t bits = note.uncaught;
    for (std::uint32_t kind = 0; kind < uncaught_kinds; ++kind) {
      if ((bits >> kind & 1U) == 0) continue;
      ranks_of[{kind, names_object(kind) ? validation::text(note.object) : std::string()}].push_back(rank);
    }
  }
  std::vector<std::string> lines;
  for (const auto& [what, ranks] : ranks_of) {
    const auto& [kind, object] = what;
    const bool may_repeat = kind == static_cast<std::uint32_t>(ipc::UncaughtCall::rings) ||
                            kind == static_cast<std::uint32_t>(ipc::UncaughtCall::processes);
    lines.push_back(name_ranks(ranks) + ": " + object + std::string(reasons.at(kind)) +
                    (may_repeat ? "" : ". This run may not repeat"));
  }
  return lines;
}

}  // namespace apenet
