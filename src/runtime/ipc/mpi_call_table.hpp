// The names and kinds of the MPI functions that are noted.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "runtime/ipc/wait_note.hpp"

namespace apenet::ipc {

struct MpiCallEntry {
  std::string_view name;
  CallKind kind = CallKind::plain;
};

inline constexpr std::array<MpiCallEntry, static_cast<std::size_t>(MpiCall::count)> mpi_call_entries = {{
    {"MPI", CallKind::plain},
    {"MPI_Finalize", CallKind::collective},
    {"MPI_Comm_split_type", CallKind::collective},
    {"MPI_Win_allocate_shared", CallKind::collective},
#define APENET_MPI_CALL(name, arity, meaning, effect, kind, words) {#name, CallKind::kind},
#define APENET_MPI_LARGE_CALL(name, arity, meaning, effect, kind, words) {#name, CallKind::kind},
#include "runtime/ipc/mpi_call_list.inc"
#undef APENET_MPI_CALL
#undef APENET_MPI_LARGE_CALL
}};

// A process may have written a number that is no call: then the entry "MPI".
[[nodiscard]] constexpr const MpiCallEntry& entry_of(MpiCall call) {
  const auto index = static_cast<std::size_t>(call);
  return index < mpi_call_entries.size() ? mpi_call_entries[index] : mpi_call_entries[0];
}

// Whether the call may tell the program that an operation has ended which an earlier call has started.
[[nodiscard]] constexpr bool completes_requests(MpiCall call) {
  const CallKind kind = entry_of(call).kind;
  return kind == CallKind::wait_one || kind == CallKind::wait_all || kind == CallKind::wait_any;
}

// Whether the call starts a directed message, of whose end only a later call tells the program.
[[nodiscard]] constexpr bool starts_message(MpiCall call) {
  switch (call) {
    case MpiCall::MPI_Isend:
    case MpiCall::MPI_Ibsend:
    case MpiCall::MPI_Irsend:
    case MpiCall::MPI_Issend:
    case MpiCall::MPI_Irecv:
    case MpiCall::MPI_Imrecv:
    case MpiCall::MPI_Start:
    case MpiCall::MPI_Startall:
      return true;
    default:
      return false;
  }
}

// Whether the call starts a collective operation that goes on behind it.
[[nodiscard]] constexpr bool starts_collective(MpiCall call) {
  const MpiCallEntry& entry = entry_of(call);
  return entry.kind == CallKind::collective && entry.name.starts_with("MPI_I") &&
         !entry.name.starts_with("MPI_Intercomm");
}

// Whether the call is about messages or requests of the program alone: what it posts of a collective
// operation belongs to one that an earlier call has started.
[[nodiscard]] constexpr bool only_continues_collectives(MpiCall call) {
  switch (entry_of(call).kind) {
    case CallKind::send:
    case CallKind::receive:
    case CallKind::exchange:
    case CallKind::wait_one:
    case CallKind::wait_all:
    case CallKind::wait_any:
      return true;
    default:
      return false;
  }
}

}  // namespace apenet::ipc
