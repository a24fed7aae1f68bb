// Notes which MPI calls the threads are in, for the deadlock report (ipc/wait_note.hpp).
//
// Runs for every message, so a note consists of a few plain stores into cache lines of the thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/ipc/client.hpp"
#include "runtime/ipc/mpi_call_table.hpp"
#include "runtime/shim/mpi_library.hpp"

namespace apenet::shim {

// The arguments of a call that its CallKind names.
struct Words {
  Word at[ipc::most_words];
};

// Records the constants of the MPI library. Call when MPI is initialised. `has_world`: initialised by
// MPI_Init, not by a session.
void note_library(ipc::RankNotes& notes, bool has_world);

// Returns the numeric value of a handle. Libraries have handles of 4 or 8 bytes.
std::uint64_t handle(Word value);
// Reads the handle at an address; 0 if the library is not known.
Word handle_at(Word address);
// The same for a file, whose handle is an address in every library.
Word file_at(Word address);

// The note of this thread; nullptr before its first call. Threads beyond noted_threads share one, which tells
// nothing.
extern constinit ipc::CallNote shared_note;
extern constinit thread_local ipc::CallNote* own_note __attribute__((tls_model("initial-exec")));
// How often this thread has called each function. A thread counts for itself, so that the order of threads
// changes no number.
extern constinit thread_local std::array<std::uint32_t, static_cast<std::size_t>(ipc::MpiCall::count)>
    own_calls __attribute__((tls_model("initial-exec")));
ipc::CallNote* claim_note(ipc::RankNotes& notes);
// Whether this thread is in an MPI call of the program.
inline bool is_in_call() {
  return own_note != nullptr && own_note->depth.get() != 0;
}

// `receive`, `buffer`: see ipc::RequestNote.
void note_request(ipc::RankNotes& notes, ipc::MpiCall call, const Words& words, Word request,
                  std::uint32_t receive = 0, Word buffer = 0);
// The request does not belong to its receive any more.
void part_from_receive(ipc::RankNotes& notes, Word request);
// Tells the provider for which receives a call waits that ends when all its requests have.
void begin_wait_for_all(ipc::Client& client, Word requests, Word count);
// Call before the library starts a persistent request, and when it has.
void begin_start(ipc::Client& client, Word request);
void end_start(ipc::Client& client, Word request);
// The address of a request in an array; 0 if the library is not known.
Word request_at(Word requests, Word index);
void note_object(ipc::RankNotes& notes, ipc::MpiCall call, std::uint64_t object, ipc::ObjectType type);
// A file that has been opened, with the words of the call.
void note_file(ipc::RankNotes& notes, ipc::MpiCall call, const Words& words, std::uint64_t file);
// The grid of a call of MPI_Cart_create, if it is the first.
void note_grid(ipc::RankNotes& notes, const Words& words);
void name_object(ipc::RankNotes& notes, std::uint64_t object, const char* name);
void forget_object(ipc::RankNotes& notes, std::uint64_t object);
// The program calls MPI_Finalize.
void note_finalise(ipc::RankNotes& notes);
void note_lock(ipc::RankNotes& notes, const Words& words);
void forget_lock(ipc::RankNotes& notes, const Words& words);

// Where the program calls.
struct Caller {
  const void* caller = nullptr;  // to where the call returns
  const void* frame = nullptr;   // frame of the called function
};

// Marks a call while it runs. Only the outermost call is noted, because libraries call their own functions.
class InCall {
 public:
  InCall(ipc::Client* client, ipc::MpiCall call, const Words& words, const Caller& site = {})
      : note_(client == nullptr ? nullptr : own_note) {
    if (client == nullptr) return;
    if (note_ == nullptr) note_ = claim_note(client->notes());
    const std::uint16_t depth = note_->depth.get();
    note_->depth.set(static_cast<std::uint16_t>(depth + 1));
    if (depth != 0) return;
#pragma GCC unroll 5
    for (std::size_t i = 0; i < ipc::most_words; ++i) {
      note_->words[i].set(static_cast<std::uint64_t>(words.at[i]));
    }
    note_->caller.set(reinterpret_cast<std::uintptr_t>(site.caller));
    note_->frame.set(reinterpret_cast<std::uintptr_t>(site.frame));
    note_->number.set(++own_calls[static_cast<std::size_t>(call)]);
    if (ipc::completes_requests(call)) note_->completing_calls.set(note_->completing_calls.get() + 1);
    note_->call.set(call);
  }
  ~InCall() {
    if (note_ == nullptr) return;
    const auto depth = static_cast<std::uint16_t>(note_->depth.get() - 1);
    note_->depth.set(depth);
    if (depth == 0) note_->call.set(ipc::MpiCall::none);
  }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

 private:
  ipc::CallNote* note_;
};

// The first and the last argument of a call.
struct Ends {
  Word first = 0;
  Word last = 0;
};

// The effects of successful calls, as listed in mpi_call_list.inc.
struct Effect {
  static void after(ipc::Client& /*client*/, ipc::MpiCall /*call*/, const Words& /*words*/,
                    const Ends& /*arguments*/) {}
};

struct Returns : Effect {};  // no effect

// The call has created a request, at the address in its last argument.
struct Starts : Effect {
  static void after(ipc::Client& client, ipc::MpiCall call, const Words& words, const Ends& arguments) {
    note_request(client.notes(), call, words, handle_at(arguments.last));
  }
};

// The same, and has posted what the request receives.
struct StartsReceive : Effect {
  static void after(ipc::Client& client, ipc::MpiCall call, const Words& words, const Ends& arguments) {
    note_request(client.notes(), call, words, handle_at(arguments.last),
                 client.block().program_messages.posted());
  }
};

// The call has created a persistent request that sends from its first argument, in standard mode.
struct PreparesSend : Effect {
  static void after(ipc::Client& client, ipc::MpiCall call, const Words& words, const Ends& arguments) {
    note_request(client.notes(), call, words, handle_at(arguments.last), 0, arguments.first);
  }
};

// The request in its first word goes on without its handle.
struct FreesRequest : Effect {
  static void after(ipc::Client& client, ipc::MpiCall /*call*/, const Words& words,
                    const Ends& /*arguments*/) {
    part_from_receive(client.notes(), words.at[0]);
  }
};

struct MakesCommunicator : Effect {
  static void after(ipc::Client& client, ipc::MpiCall call, const Words& /*words*/, const Ends& arguments) {
    note_object(client.notes(), call, static_cast<std::uint64_t>(handle_at(arguments.last)),
                ipc::ObjectType::communicator);
  }
};

// Its second and third word are the number of dimensions and the address of their extents.
struct MakesGrid : MakesCommunicator {
  static void after(ipc::Client& client, ipc::MpiCall call, const Words& words, const Ends& arguments) {
    MakesCommunicator::after(client, call, words, arguments);
    note_grid(client.notes(), words);
  }
};

struct MakesWindow : Effect {
  static void after(ipc::Client& client, ipc::MpiCall call, const Words& /*words*/, const Ends& arguments) {
    note_object(client.notes(), call, static_cast<std::uint64_t>(handle_at(arguments.last)),
                ipc::ObjectType::window);
  }
};

// The second word is the address of the file's name.
struct MakesFile : Effect {
  static void after(ipc::Client& client, ipc::MpiCall call, const Words& words, const Ends& arguments) {
    note_file(client.notes(), call, words, static_cast<std::uint64_t>(file_at(arguments.last)));
  }
};

// The communicator or window in its first word has been freed.
struct Frees : Effect {
  static void after(ipc::Client& client, ipc::MpiCall /*call*/, const Words& words,
                    const Ends& /*arguments*/) {
    forget_object(client.notes(), handle(words.at[0]));
  }
};

struct FreesFile : Effect {
  static void after(ipc::Client& client, ipc::MpiCall /*call*/, const Words& words,
                    const Ends& /*arguments*/) {
    forget_object(client.notes(), static_cast<std::uint64_t>(words.at[0]));
  }
};

struct Locks : Effect {
  static void after(ipc::Client& client, ipc::MpiCall /*call*/, const Words& words,
                    const Ends& /*arguments*/) {
    note_lock(client.notes(), words);
  }
};

struct Unlocks : Effect {
  static void after(ipc::Client& client, ipc::MpiCall /*call*/, const Words& words,
                    const Ends& /*arguments*/) {
    forget_lock(client.notes(), words);
  }
};

}  // namespace apenet::shim
