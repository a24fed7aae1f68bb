// What a rank waits for, as far as the libraries in its process know. The simulator reads it only for the
// deadlock report.
//
// Owner: the process. The simulator reads while the process waits. Threads that do not wait in the simulator
// may write meanwhile, so every field is atomic. The content may be arbitrary: the reader checks indices,
// counts and names (scheduler/rank_snapshot.hpp).
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
  MPI_Win_allocate_shared,
#define APENET_MPI_CALL(name, arity, meaning, effect, kind, words) name,
#define APENET_MPI_LARGE_CALL(name, arity, meaning, effect, kind, words) name,
#include "runtime/ipc/mpi_call_list.inc"
#undef APENET_MPI_CALL
#undef APENET_MPI_LARGE_CALL
  count,
};

// The meaning of the words of a CallNote. A peer is a rank of the communicator.
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
  file_collective,    // file
};

inline constexpr std::size_t most_words = 5;
inline constexpr std::size_t wait_call_bytes = 64;
inline constexpr std::uint32_t noted_threads = 16;
inline constexpr std::uint32_t noted_requests = 1024;  // a power of two
inline constexpr std::uint32_t noted_objects = 256;    // communicators, windows and files
inline constexpr std::uint32_t noted_locks = 32;
inline constexpr std::size_t most_grid_dimensions = 8;

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
  NoteField<std::uint16_t> depth;  // nesting depth of calls
  NoteField<std::uint16_t> taken;  // a thread owns this note
  NoteField<std::uint64_t> words[most_words];
  NoteField<std::uint64_t> caller;  // where the call returns to, in the process's memory; 0: not known
  NoteField<std::uint64_t> frame;   // address on the stack above which the caller's frames lie
  NoteField<std::uint32_t> number;  // among the thread's calls of this function, from 1
  NoteField<std::uint32_t> completing_calls;  // begun by the thread so far (completes_requests)
};
static_assert(sizeof(CallNote) == 128);

// The call that created a request, and its words. Indexed by the request's handle; a later request with the
// same index replaces it.
struct RequestNote {
  NoteField<std::uint64_t> handle;
  NoteField<MpiCall> call;
  NoteField<std::int32_t> peer;
  NoteField<std::int32_t> tag;
  NoteField<std::int32_t> target;  // CallKind::exchange
  NoteField<std::int32_t> target_tag;
  NoteField<std::uint64_t> communicator;
  NoteField<std::uint32_t> receive;  // ProgramMessages::posted() of the call that started it last
  NoteField<std::uint64_t> buffer;   // MPI_Send_init; otherwise 0
};

enum class ObjectType : std::uint8_t { communicator, window, file };

// A communicator, window or file. The ranks that created it together have the same hash and `ordinal`, which
// counts the objects with the same members.
struct ObjectNote {
  NoteField<std::uint64_t> handle;  // 0: never used
  NoteField<std::uint32_t> freed;   // the object is freed here, but other ranks may still wait in it
  NoteField<std::uint64_t> members_hash;
  NoteField<std::uint32_t> ordinal;
  NoteField<std::int32_t> rank;  // this process's rank in it
  NoteField<std::int32_t> size;
  NoteField<MpiCall> maker;
  NoteField<std::uint64_t> caller;  // CallNote::caller of the call that made it
  NoteField<ObjectType> type;
  NoteField<std::uint32_t> is_inter;  // peers are ranks of the other group
  NoteField<char> name[32];           // set by the program, or the file's; empty if none
};

// A passive lock that the process holds.
struct LockNote {
  NoteField<std::uint64_t> window;  // 0: free
  NoteField<std::int32_t> target;   // rank of the window's group, or all_targets
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

// Messages that lay unmatched while the process finalised MPI.
struct UnreceivedNote {
  std::uint32_t count = 0;
  std::int32_t source = -1;  // sender of the first one
  std::uint64_t tag = 0;
};

// Written by the provider: operations posted and not yet matched, or begun and not finished.
struct WaitNote {
  std::uint32_t receives = 0;
  std::int32_t receive_source = -1;  // source of the oldest; -1: any source
  std::uint64_t receive_tag = 0;
  std::uint32_t sends = 0;
  std::int32_t send_target = -1;   // target of the oldest
  std::uint32_t has_send_tag = 0;  // 1 if the oldest is a message, not an access to the target's memory
  std::uint64_t send_tag = 0;
  std::uint32_t left_sends = 0;   // unfinished when the process closed its endpoints
  std::int32_t left_target = -1;  // target of the oldest of these
  std::uint64_t left_tag = 0;
  UnreceivedNote unreceived = {};                 // messages of the program
  UnreceivedNote unreceived_of_collectives = {};  // those of the MPI library, when it closed its endpoints
  char call[wait_call_bytes] =
      {};  // call of a library other than MPI in which the process waits; empty: none
};

// Written by the process when it calls MPI_Finalize.
struct FinaliseNote {
  NoteField<std::uint32_t> is_called;
  // The file of code that made a window which is not freed yet, and the address at which it is loaded.
  NoteField<std::uint64_t> loaded_at;
  NoteField<char> file[256];
};

// The grid of the first MPI_Cart_create that has made one.
struct GridNote {
  NoteField<std::uint32_t> dimensions;  // 0: none; written last
  NoteField<std::int32_t> extents[most_grid_dimensions];
};

struct RankNotes {
  LibraryNote library;
  GridNote grid;
  FinaliseNote finalise;
  CallNote calls[noted_threads];
  LockNote locks[noted_locks];
  ObjectNote objects[noted_objects];
  RequestNote requests[noted_requests];
};

// The MPI call in which the rank is; nullptr if it is in none, or if several of its threads are in calls.
[[nodiscard]] inline const CallNote* only_note(const RankNotes& notes) {
  const CallNote* found = nullptr;
  for (const CallNote& note : notes.calls) {
    if (note.call.get() == MpiCall::none) continue;
    if (found != nullptr) return nullptr;
    found = &note;
  }
  return found;
}
// What the threads have begun so far.
[[nodiscard]] inline std::uint32_t completing_calls(const RankNotes& notes) {
  std::uint32_t sum = 0;
  for (const CallNote& note : notes.calls) sum += note.completing_calls.get();
  return sum;
}
[[nodiscard]] inline MpiCall only_call(const RankNotes& notes) {
  const CallNote* note = only_note(notes);
  return note == nullptr ? MpiCall::none : note->call.get();
}

// The index of a request in RankNotes::requests.
[[nodiscard]] constexpr std::size_t request_place(std::uint64_t handle) {
  return handle * 0x9e3779b97f4a7c15U >> 54 & (noted_requests - 1);
}

}  // namespace apenet::ipc
