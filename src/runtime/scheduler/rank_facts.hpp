// What the notes of a rank say (ipc/wait_note.hpp), checked and resolved: values, for the report of a
// deadlock.
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

// Name of an MPI function; "MPI" for what is none.
[[nodiscard]] std::string_view name_of(ipc::MpiCall call);

// A communicator or window, as one of its members knows it.
struct ObjectFact {
  enum class Kind : std::uint8_t { unknown, world, self, made };
  Kind kind = Kind::unknown;
  bool is_window = false;
  bool is_inter = false;
  std::uint64_t members_hash = 0;
  std::uint32_t ordinal = 0;
  std::int32_t rank = 0;  // of the rank that knows it
  ipc::MpiCall maker = ipc::MpiCall::none;
  std::string name;

  // Whether two ranks mean the same one.
  [[nodiscard]] bool is(const ObjectFact& other) const {
    return kind == other.kind && is_window == other.is_window && members_hash == other.members_hash &&
           ordinal == other.ordinal;
  }
};

// What a call is about, or the call that made a request. Peers are ranks of the object.
struct OperationFact {
  ipc::MpiCall call = ipc::MpiCall::none;
  ipc::CallKind kind = ipc::CallKind::plain;
  ObjectFact object;
  std::optional<std::int32_t> source;  // of a receive; none: any
  std::optional<std::int32_t> tag;     // none: any
  std::int32_t target = 0;             // of a send, or in a window: ipc::all_targets
  std::int32_t target_tag = 0;
};

// The call that a thread is in.
struct CallFact {
  OperationFact operation;
  std::vector<OperationFact> requests;  // that it waits for, as far as they are known
  std::uint64_t request_count = 0;
};

struct LockFact {
  ObjectFact window;
  std::int32_t target = 0;
};

struct RankFacts {
  enum class State : std::uint8_t { starts, waits, polls, away, finished };
  State state = State::waits;
  std::vector<CallFact> calls;      // of each thread that is in one
  std::vector<ObjectFact> objects;  // also freed ones
  std::vector<LockFact> locks;
  ipc::WaitNote provider;
};

// Copies memory of the rank's process; false: it is not there.
using MemoryReader = std::function<bool(std::uint64_t address, std::span<std::byte> to)>;

[[nodiscard]] RankFacts read_facts(const ipc::RankNotes& notes, const ipc::WaitNote& provider,
                                   std::uint32_t process_count, const MemoryReader& read);

}  // namespace apenet
