// Intake: what the simulator reads from a process's block, copied once and checked.
//
// A process may write anything at any time, also while it is read. So nothing is read twice, and what is used
// is the copy that was checked. Each function throws RankError naming the field, its value and what was
// expected.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/ipc/protocol.hpp"
#include "runtime/scheduler/rank_error.hpp"

namespace apenet::intake {

// Of one request, 64 GiB: the provider cuts what is longer, and times stay far from the end of their 64 bits.
inline constexpr std::int64_t most_bytes = std::int64_t{1} << 36;

// What a process has left in its block when it began to wait.
struct State {
  ipc::Wait wait = ipc::Wait::running;
  std::int64_t clock_ps = 0;
  std::int64_t deadline_ps = 0;
};

// clock_seen_ps: what the clock was when the process was last seen, before which it cannot lie.
State state(std::uint32_t rank, const ipc::Block& block, std::int64_t clock_seen_ps);

// The clock alone.
std::int64_t clock_ps(std::uint32_t rank, const ipc::Block& block, std::int64_t clock_seen_ps);

// Into `to`: a request that was posted between two times, for one of so many processes. Whether the card can
// do it is the machine's to say.
void request(std::uint32_t rank, const ipc::Request& shared, std::int64_t earliest_ps, std::int64_t latest_ps,
             std::uint32_t process_count, ipc::Request& to);

// A count of a ring of so many entries: what its writer has added since `seen`, of which at most `most`.
std::uint32_t added(std::uint32_t rank, const char* name, std::uint32_t count, std::uint32_t seen,
                    std::uint32_t most);

// When an event was taken that was told at told_ps.
std::int64_t taken_ps(std::uint32_t rank, const ipc::Event& shared, std::int64_t told_ps,
                      std::int64_t clock_ps);

// A slot that the process gives back to its owner.
struct Returned {
  std::uint32_t owner;
  std::uint32_t slot;
};
Returned returned(std::uint32_t rank, const std::uint32_t (&shared)[2], std::uint32_t process_count);

// What the process's MPI library calls itself, of printable characters.
std::string library(const ipc::Identity& identity);

// "rank 3 wrote an invalid request: inline_length = 4096, expected at most 192".
[[noreturn]] void refuse(std::uint32_t rank, const char* what, const char* field, std::int64_t value,
                         const std::string& expected);

}  // namespace apenet::intake
