// Reads a rank's notes (ipc/wait_note.hpp), checks and resolves them. The results are plain values for the
// deadlock report.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ipc/wait_note.hpp"

namespace apenet {

// Returns the name of an MPI function, or "MPI" if the number is invalid.
[[nodiscard]] std::string_view name_of(ipc::MpiCall call);

enum class ObjectKind : std::uint8_t { unknown, world, self, made };

// A communicator, window or file, as one of its members describes it.
struct ObjectSnapshot {
  ObjectKind kind = ObjectKind::unknown;
  ipc::ObjectType type = ipc::ObjectType::communicator;
  bool is_inter = false;
  std::uint64_t members_hash = 0;
  std::uint32_t ordinal = 0;
  std::int32_t rank = 0;  // the describing member's rank in it
  ipc::MpiCall maker = ipc::MpiCall::none;
  std::string name;
  std::uint64_t caller = 0;  // see ipc::ObjectNote
  bool is_freed = false;

  // Whether two ranks describe the same object.
  [[nodiscard]] bool is(const ObjectSnapshot& other) const {
    return kind == other.kind && type == other.type && members_hash == other.members_hash &&
           ordinal == other.ordinal;
  }
};

// The operation of a call, or of the call that created a request. Peers are ranks within the object.
struct OperationSnapshot {
  ipc::MpiCall call = ipc::MpiCall::none;
  ipc::CallKind kind = ipc::CallKind::plain;
  ObjectSnapshot object;
  std::optional<std::int32_t> source;  // a receive's; empty means any source
  std::optional<std::int32_t> tag;     // empty means any tag
  std::int32_t target = 0;             // for a send or window call; may be ipc::all_targets in a window
  std::int32_t target_tag = 0;
};

// The call in which a thread waits.
struct CallSnapshot {
  OperationSnapshot operation;
  std::vector<OperationSnapshot> requests;  // the requests it waits for, as far as known
  std::uint64_t request_count = 0;
  std::uint64_t caller = 0;  // see ipc::CallNote
  std::uint64_t frame = 0;
  std::string place = {};  // "exchange.c:12", where the program calls; empty if it is not known
};

struct LockSnapshot {
  ObjectSnapshot window;
  std::int32_t target = 0;
};

struct FinaliseSnapshot {
  bool is_called = false;
  bool is_mpich = false;        // or a library with its handles
  std::uint64_t loaded_at = 0;  // see ipc::FinaliseNote
  std::string file;
};

struct RankSnapshot {
  enum class State : std::uint8_t { starts, waits, polls, suspended, finished };
  State state = State::waits;
  std::vector<CallSnapshot> calls;      // one per thread that is in a call
  std::vector<ObjectSnapshot> objects;  // includes freed objects
  std::vector<LockSnapshot> locks;
  // The oldest send that is not finished, and the oldest that was not when the rank left. Their calls may not
  // be known.
  std::optional<OperationSnapshot> pending_send;
  std::optional<OperationSnapshot> left_send;
  FinaliseSnapshot finalise;
  ipc::WaitNote provider;
  std::vector<std::string> socket_waits;  // see IpNetwork::waits_of()
};

// Copies memory of the rank's process. Returns false if the address is not mapped.
using MemoryReader = std::function<bool(std::uint64_t address, std::span<std::byte> to)>;

[[nodiscard]] RankSnapshot read_snapshot(const ipc::RankNotes& notes, const ipc::WaitNote& provider,
                                         std::uint32_t process_count, const MemoryReader& read);

}  // namespace apenet
