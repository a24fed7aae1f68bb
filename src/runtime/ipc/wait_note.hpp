// What a rank waits for, as the libraries in its process know it: read by the simulator for the report of a
// deadlock, and by nobody else.
//
// Owner: the process. The simulator reads while the process waits; every field is atomic, because threads of
// the process that do not wait in the simulator may write meanwhile. What is read may be anything: indices,
// counts and names are checked by the reader (scheduler/rank_facts.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace apenet::ipc {

// The MPI functions that are noted. `none`: the thread is in none of them.
enum class MpiCall : std::uint32_t {
  none,
  MPI_Finalize,
  MPI_Comm_split_type,
#define APENET_MPI_CALL(name, arity, meaning, effect, kind, words) name,
#define APENET_MPI_LARGE_CALL(name, arity, meaning, effect, kind, words) name,
#include "runtime/ipc/mpi_call_list.inc"
#undef APENET_MPI_CALL
#undef APENET_MPI_LARGE_CALL
  count,
};

// What the words of a CallNote mean. A peer is a rank of the communicator.
enum class CallKind : std::uint8_t {
  plain,              // none
  send,               // communicator, target, tag
  receive,            // communicator, source, tag
  exchange,           // communicator, source, tag of the receive, target, tag of the send
  collective,         // communicator
  wait_one,           // request
  wait_all,           // address of the requests, count
  wait_any,           // address of the requests, count
  window,             // window, target
  window_collective,  // window
  window_epoch,       // window
};

inline constexpr std::size_t most_words = 5;
inline constexpr std::uint32_t noted_threads = 16;
inline constexpr std::uint32_t noted_requests = 1024;  // a power of two
inline constexpr std::uint32_t noted_objects = 256;    // communicators and windows
inline constexpr std::uint32_t noted_locks = 32;

template <typename Value>
class NoteField {
 public:
  [[nodiscard]] Value get() const { return value_.load(std::memory_order_relaxed); }
  void set(Value value) { value_.store(value, std::memory_order_relaxed); }

 private:
  std::atomic<Value> value_{};
};

// The outermost MPI call of one thread, with its arguments as the caller passed them.
struct CallNote {
  alignas(64) NoteField<MpiCall> call;
  NoteField<std::uint32_t> depth;  // calls inside each other
  NoteField<std::uint32_t> taken;  // by a thread
  NoteField<std::uint64_t> words[most_words];
};

// What made a request: the words of that call. Found by the request's handle; a later one with the same place
// replaces it.
struct RequestNote {
  NoteField<std::uint64_t> handle;
  NoteField<MpiCall> call;
  NoteField<std::int32_t> peer;
  NoteField<std::int32_t> tag;
  NoteField<std::int32_t> target;  // CallKind::exchange
  NoteField<std::int32_t> target_tag;
  NoteField<std::uint64_t> communicator;
};

// A communicator or window. Ranks that made it together have the same identity; `ordinal` counts those of the
// same members.
struct ObjectNote {
  NoteField<std::uint64_t> handle;  // 0: nothing was ever here
  NoteField<std::uint32_t> freed;   // others may still wait in it
  NoteField<std::uint64_t> members_hash;
  NoteField<std::uint32_t> ordinal;
  NoteField<std::int32_t> rank;  // of this process in it
  NoteField<std::int32_t> size;
  NoteField<MpiCall> maker;
  NoteField<std::uint32_t> is_window;
  NoteField<std::uint32_t> is_inter;  // peers are ranks of the other group
  NoteField<char> name[32];           // given by the program; empty: none
};

// A passive lock that the process holds.
struct LockNote {
  NoteField<std::uint64_t> window;  // 0: free
  NoteField<std::int32_t> target;   // rank of the window's group, all_targets
};
inline constexpr std::int32_t all_targets = -1;

// Constants and handles of the program's MPI library.
struct LibraryNote {
  NoteField<std::uint32_t> handle_bytes;  // 0: not known
  NoteField<std::int32_t> any_source;
  NoteField<std::int32_t> any_tag;
  NoteField<std::uint64_t> world;
  NoteField<std::uint64_t> self;
};

// Of the provider: what is posted and not yet matched, or begun and not finished.
struct WaitNote {
  std::uint32_t receives = 0;
  std::int32_t receive_source = -1;  // of the oldest: rank, -1 any
  std::uint64_t receive_tag = 0;
  std::uint32_t sends = 0;
  std::int32_t send_target = -1;  // of the oldest
};

struct RankNotes {
  LibraryNote library;
  CallNote calls[noted_threads];
  LockNote locks[noted_locks];
  ObjectNote objects[noted_objects];
  RequestNote requests[noted_requests];
};

// The place of a request among RankNotes::requests.
[[nodiscard]] constexpr std::size_t request_place(std::uint64_t handle) {
  return handle * 0x9e3779b97f4a7c15U >> 54 & (noted_requests - 1);
}

}  // namespace apenet::ipc
