// Request validation: copies once, and checks, everything that the simulator reads from a process's block.
//
// A process may write anything at any time, even during the read. Therefore nothing is read twice, and only
// the checked copy is used. Each function throws RankError, which names the field, its value and what was
// expected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernel/time.hpp"
#include "runtime/ipc/protocol.hpp"
#include "runtime/scheduler/rank_error.hpp"
#include "runtime/scheduler/rank_state.hpp"

namespace apenet::validation {

// Upper limit of one request, 64 GiB. The provider splits longer ones. The limit keeps times far from the
// range of 64 bits.
using message::most_bytes;

// What a process wrote into its block when it began to wait.
struct WaitReport {
  RankInput input = RankInput::reports_leave;  // never reports_polling
  std::int64_t clock_ps = 0;
  std::int64_t deadline_ps = Time::never().ps();  // never if the wait has none
  std::uint32_t least_events = 1;
};

// The report of a process that waits for this reason; empty for a process that runs, and for no reason.
std::optional<RankInput> input_of(ipc::Wait wait);

// clock_seen_ps: the clock when it was last read; the clock must not go back.
WaitReport wait_report(std::uint32_t rank, const ipc::Block& block, std::int64_t clock_seen_ps);

// Reads only the clock.
std::int64_t clock_ps(std::uint32_t rank, const ipc::Block& block, std::int64_t clock_seen_ps);

// What the requests of a run can name.
struct RunSize {
  std::uint32_t process_count;
  std::uint32_t rail_count;  // rails per node
};

// Copies a request into `to` and checks that its time lies between the two limits and that its target and its
// rail exist. The machine checks whether the card supports it.
void request(std::uint32_t rank, const ipc::Request& shared, std::int64_t earliest_ps, std::int64_t latest_ps,
             RunSize size, ipc::Request& to);

// Returns how many entries the writer of a ring counter has added since `seen`; throws if more than `most`.
std::uint32_t added(std::uint32_t rank, const char* name, std::uint32_t count, std::uint32_t seen,
                    std::uint32_t most);

// Returns when the process took an event that became visible at visible_ps.
std::int64_t taken_ps(std::uint32_t rank, const ipc::Event& shared, std::int64_t visible_ps,
                      std::int64_t clock_ps);

// A slot that the process gives back to its owner.
struct Returned {
  std::uint32_t owner;
  std::uint32_t slot;
};
Returned returned(std::uint32_t rank, const std::uint32_t (&shared)[2], std::uint32_t process_count);

// The text, fit for a message (one_line()); lines stay if it has them.
std::string printable(std::string_view text, bool has_lines = false);
// The text in the bytes, up to the first zero, likewise.
template <std::size_t size>
std::string text(const char (&bytes)[size]) {
  return printable(std::string_view(bytes, strnlen(bytes, size)));
}
// Returns the name of the process's MPI library, with unprintable characters replaced.
std::string library(const ipc::Identity& identity);
// Returns Identity::unfollowed, likewise.
std::string unfollowed(const ipc::Identity& identity);
// Returns Identity::refusal, likewise, but with its lines; empty if there is none.
std::string refusal(const ipc::Identity& identity);

// Throws for example "rank 3 wrote an invalid request: inline_length = 4096, expected at most 192".
[[noreturn]] void refuse(std::uint32_t rank, const char* what, const char* field, std::int64_t value,
                         const std::string& expected);

}  // namespace apenet::validation
