#include "runtime/shim/call_notes.hpp"

#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/ipc/client.hpp"
#include "runtime/ipc/code_files.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

using ipc::MpiCall;
using ipc::RankNotes;

// The process's own copy of the library's constants. Set once, before virtual time begins.
struct Library {
  std::uint32_t handle_bytes = 0;
  Word world = 0;
  std::uint64_t no_communicator = 0;
  std::uint64_t no_window = 0;
  bool has_world = false;
};

Library& library() {
  static Library value;
  return value;
}

// Objects are created and freed rarely, by any thread, so one mutex is enough.
struct Objects {
  std::mutex mutex;
  std::map<std::uint64_t, std::uint32_t> made;  // number of objects with the same members, by their hash
};

Objects& objects() {
  static auto& value = *new Objects;
  return value;
}

ipc::ObjectNote* find_object(RankNotes& notes, std::uint64_t object) {
  for (ipc::ObjectNote& note : notes.objects) {
    if (note.handle.get() == object && note.freed.get() == 0) return &note;
  }
  return nullptr;
}

// Returns a free note: one never used, or one of a freed object. Returns nullptr if there is none.
ipc::ObjectNote* room_for_object(RankNotes& notes) {
  ipc::ObjectNote* room = find_object(notes, 0);
  for (ipc::ObjectNote& note : notes.objects) {
    if (room == nullptr && note.freed.get() != 0) room = &note;
  }
  return room;
}

// Returns nullptr if the request is not noted.
ipc::RequestNote* find_request(RankNotes& notes, std::uint64_t request) {
  ipc::RequestNote& note = notes.requests[ipc::request_place(request)];
  return note.handle.get() == request ? &note : nullptr;
}

// Hashes the members' world ranks in order, by FNV-1a.
std::uint64_t hash_of(const std::vector<int>& members) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const int member : members) hash = (hash ^ static_cast<std::uint32_t>(member)) * 0x100000001b3U;
  return hash;
}

// Uses only local MPI calls. Passes group handles as words; a library with shorter handles uses the lower
// half.
void note_members(ipc::ObjectNote& note, std::uint64_t object, ipc::ObjectType type) {
  const auto word = static_cast<Word>(object);
  int is_inter = 0;
  Word group = 0;
  Word world = 0;
  if (type == ipc::ObjectType::window) {
    call(profiling_symbol("PMPI_Win_get_group"), word, &group);
  } else if (type == ipc::ObjectType::file) {
    call(profiling_symbol("PMPI_File_get_group"), word, &group);
  } else {
    call(profiling_symbol("PMPI_Comm_test_inter"), word, &is_inter);
    call(profiling_symbol("PMPI_Comm_group"), word, &group);
  }
  call(profiling_symbol("PMPI_Comm_group"), library().world, &world);
  int size = 0;
  int rank = 0;
  call(profiling_symbol("PMPI_Group_size"), group, &size);
  call(profiling_symbol("PMPI_Group_rank"), group, &rank);
  std::vector<int> own(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) own[static_cast<std::size_t>(i)] = i;
  std::vector<int> members(own.size());
  call(profiling_symbol("PMPI_Group_translate_ranks"), group, Word{size}, own.data(), world, members.data());
  call(profiling_symbol("PMPI_Group_free"), &group);
  call(profiling_symbol("PMPI_Group_free"), &world);
  const std::uint64_t hash = hash_of(members);
  note.members_hash.set(hash);
  note.ordinal.set(objects().made[hash]++);
  note.rank.set(rank);
  note.size.set(size);
  note.is_inter.set(static_cast<std::uint32_t>(is_inter));
}

void release(ipc::CallNote* note) {
  note->call.set(MpiCall::none);
  note->depth.set(0);
  note->taken.set(0);
}

struct ThreadEnd {
  ipc::CallNote* note = nullptr;
  ~ThreadEnd() {
    if (note != nullptr && rank_client() != nullptr) release(note);  // not in a forked child
  }
};

}  // namespace

void note_library(RankNotes& notes, bool has_world) {
  ipc::LibraryNote& note = notes.library;
  const auto set = [&note](int any_source, int any_tag, std::uint64_t world, std::uint64_t self) {
    note.any_source.set(any_source);
    note.any_tag.set(any_tag);
    note.world.set(world);
    note.self.set(self);
  };
  Library& own = library();
  own.handle_bytes = sizeof(Word);
  switch (abi()) {
    case Abi::openmpi:
      set(-1, -1, openmpi_object("ompi_mpi_comm_world"), openmpi_object("ompi_mpi_comm_self"));
      own.no_communicator = openmpi_object("ompi_mpi_comm_null");
      own.no_window = openmpi_object("ompi_mpi_win_null");
      break;
    case Abi::standard:
      set(-1, -2, 0x101, 0x102);  // MPI 5.0, chapter 20
      own.no_communicator = 0x100;
      own.no_window = 0x110;
      break;
    case Abi::mpich:
      set(-2, -1, 0x44000000, 0x44000001);  // MPICH's mpi.h
      own.handle_bytes = sizeof(std::int32_t);
      own.no_communicator = 0x04000000;
      own.no_window = 0x20000000;
  }
  own.world = static_cast<Word>(note.world.get());
  own.has_world = has_world;
  note.handle_bytes.set(own.handle_bytes);
}

std::uint64_t handle(Word value) {
  const auto whole = static_cast<std::uint64_t>(value);
  return library().handle_bytes == sizeof(Word) ? whole : whole & 0xffffffff;
}

Word handle_at(Word address) {
  if (address == 0 || library().handle_bytes == 0) return 0;
  const auto* at = reinterpret_cast<const void*>(address);  // NOLINT(performance-no-int-to-ptr)
  Word value = 0;
  std::memcpy(&value, at, library().handle_bytes);
  return value;
}

Word file_at(Word address) {
  if (address == 0) return 0;
  return *reinterpret_cast<const Word*>(address);  // NOLINT(performance-no-int-to-ptr)
}

constinit thread_local ipc::CallNote* own_note = nullptr;
constinit thread_local std::array<std::uint32_t, static_cast<std::size_t>(MpiCall::count)> own_calls{};

constinit ipc::CallNote shared_note{};

ipc::CallNote* claim_note(RankNotes& notes) {
  static std::mutex mutex;
  thread_local ThreadEnd end;
  const std::lock_guard<std::mutex> guard(mutex);
  own_note = &shared_note;
  for (ipc::CallNote& note : notes.calls) {
    if (note.taken.get() != 0) continue;
    note.taken.set(1);
    own_note = end.note = &note;
    break;
  }
  return own_note;
}

void note_request(RankNotes& notes, MpiCall call, const Words& words, Word request, std::uint32_t receive,
                  Word buffer) {
  const std::uint64_t key = handle(request);
  ipc::RequestNote& note = notes.requests[ipc::request_place(key)];
  note.handle.set(key);
  note.call.set(call);
  note.communicator.set(static_cast<std::uint64_t>(words.at[0]));
  note.peer.set(static_cast<std::int32_t>(words.at[1]));
  note.tag.set(static_cast<std::int32_t>(words.at[2]));
  note.target.set(static_cast<std::int32_t>(words.at[3]));
  note.target_tag.set(static_cast<std::int32_t>(words.at[4]));
  note.receive.set(receive);
  note.buffer.set(static_cast<std::uint64_t>(buffer));
}

void part_from_receive(RankNotes& notes, Word request) {
  if (ipc::RequestNote* note = find_request(notes, handle(request))) note->receive.set(0);
}

void begin_start(ipc::Client& client, Word request) {
  const ipc::RequestNote* note = find_request(client.notes(), handle(request));
  client.block().program_messages.begin_send(note == nullptr ? 0 : note->buffer.get());
  client.block().program_messages.begin_receive();
}

void end_start(ipc::Client& client, Word request) {
  ipc::ProgramMessages& messages = client.block().program_messages;
  messages.end_send();
  ipc::RequestNote* note = find_request(client.notes(), handle(request));
  if (note != nullptr && note->call.get() == MpiCall::MPI_Recv_init) note->receive.set(messages.posted());
}

Word request_at(Word requests, Word index) {
  const std::uint32_t bytes = library().handle_bytes;
  return bytes == 0 || requests == 0 ? 0 : requests + index * static_cast<Word>(bytes);
}

void begin_wait_for_all(ipc::Client& client, Word requests, Word count) {
  const Word end = static_cast<std::int32_t>(count);  // the upper half of an int's register is not defined
  std::array<std::uint32_t, ipc::ProgramMessages::most_awaited> numbers;
  std::uint32_t found = 0;
  for (Word i = 0; request_at(requests, i) != 0 && i < end && found < numbers.size(); ++i) {
    const ipc::RequestNote* note = find_request(client.notes(), handle(handle_at(request_at(requests, i))));
    if (note != nullptr && note->receive.get() != 0) numbers[found++] = note->receive.get();
  }
  client.block().program_messages.begin_wait(numbers, found);
}

void note_object(RankNotes& notes, MpiCall call, std::uint64_t object, ipc::ObjectType type) {
  const bool is_none = (type == ipc::ObjectType::window && object == library().no_window) ||
                       (type == ipc::ObjectType::communicator && object == library().no_communicator);
  if (object == 0 || is_none || !library().has_world) return;
  const std::lock_guard<std::mutex> guard(objects().mutex);
  ipc::ObjectNote* note = room_for_object(notes);
  if (note == nullptr) return;
  note_members(*note, object, type);
  note->maker.set(call);
  note->caller.set(is_in_call() ? own_note->caller.get() : 0);
  note->type.set(type);
  note->name[0].set('\0');
  note->freed.set(0);
  note->handle.set(object);
}

void note_file(RankNotes& notes, MpiCall call, const Words& words, std::uint64_t file) {
  note_object(notes, call, file, ipc::ObjectType::file);
  const char* const path = reinterpret_cast<const char*>(words.at[1]);  // NOLINT(performance-no-int-to-ptr)
  if (path == nullptr) return;
  const char* const last = std::strrchr(path, '/');
  name_object(notes, file, last == nullptr ? path : last + 1);
}

void note_grid(ipc::RankNotes& notes, const Words& words) {
  const auto dimensions = static_cast<std::int32_t>(words.at[1]);
  if (notes.grid.dimensions.get() != 0 || dimensions < 1 ||
      static_cast<std::size_t>(dimensions) > ipc::most_grid_dimensions)
    return;
  const auto* extents = reinterpret_cast<const int*>(words.at[2]);  // NOLINT(performance-no-int-to-ptr)
  for (std::int32_t i = 0; i < dimensions; ++i) notes.grid.extents[i].set(extents[i]);
  notes.grid.dimensions.set(static_cast<std::uint32_t>(dimensions));
}

void name_object(RankNotes& notes, std::uint64_t object, const char* name) {
  const std::lock_guard<std::mutex> guard(objects().mutex);
  ipc::ObjectNote* note = find_object(notes, object);
  if (note == nullptr || name == nullptr) return;
  const std::size_t length = strnlen(name, std::size(note->name) - 1);
  for (std::size_t i = 0; i < length; ++i) note->name[i].set(name[i]);
  note->name[length].set('\0');
}

void forget_object(RankNotes& notes, std::uint64_t object) {
  const std::lock_guard<std::mutex> guard(objects().mutex);
  ipc::ObjectNote* note = object == 0 ? nullptr : find_object(notes, object);
  if (note != nullptr) note->freed.set(1);
}

void note_finalise(RankNotes& notes) {
  ipc::FinaliseNote& finalise = notes.finalise;
  const std::lock_guard<std::mutex> guard(objects().mutex);
  ipc::CodeFiles files;
  for (const ipc::ObjectNote& note : notes.objects) {
    if (note.handle.get() == 0 || note.freed.get() != 0 || note.type.get() != ipc::ObjectType::window)
      continue;
    files.refresh();
    const ipc::CodeFile* code = files.find(note.caller.get());
    if (code == nullptr || code->path.empty() || code->path.size() >= std::size(finalise.file)) continue;
    finalise.loaded_at.set(code->loaded_at);
    for (std::size_t i = 0; i < code->path.size(); ++i) finalise.file[i].set(code->path[i]);
    break;
  }
  finalise.is_called.set(1);
}

void note_lock(RankNotes& notes, const Words& words) {
  for (ipc::LockNote& lock : notes.locks) {
    if (lock.window.get() != 0) continue;
    lock.target.set(static_cast<std::int32_t>(words.at[1]));
    lock.window.set(handle(words.at[0]));
    return;
  }
}

void forget_lock(RankNotes& notes, const Words& words) {
  for (ipc::LockNote& lock : notes.locks) {
    const bool is_this = lock.window.get() == handle(words.at[0]) &&
                         lock.target.get() == static_cast<std::int32_t>(words.at[1]);
    if (!is_this) continue;
    lock.window.set(0);
    return;
  }
}

}  // namespace apenet::shim
