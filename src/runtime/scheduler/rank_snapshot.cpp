#include "runtime/scheduler/rank_snapshot.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstring>

#include "kernel/one_line.hpp"
#include "runtime/ipc/mpi_call_table.hpp"
#include "runtime/ipc/program_tags.hpp"

namespace apenet {
namespace {

using ipc::CallKind;
using ipc::MpiCall;

// Limits how many requests of one waiting call are examined.
constexpr std::uint64_t most_requests = 256;

class Reader {
 public:
  Reader(const ipc::RankNotes& notes, const MemoryReader& read)
      : notes_(notes), read_(read), handle_bytes_(notes.library.handle_bytes.get() == 4 ? 4 : 8) {}

  [[nodiscard]] CallSnapshot call(const ipc::CallNote& note) const;
  [[nodiscard]] ObjectSnapshot object(std::uint64_t word, ipc::ObjectType type) const;
  [[nodiscard]] ObjectSnapshot object(const ipc::ObjectNote& note) const;
  [[nodiscard]] FinaliseSnapshot finalise() const;
  [[nodiscard]] OperationSnapshot send_of(std::int32_t target, std::uint64_t tag) const;

 private:
  [[nodiscard]] std::uint64_t handle(std::uint64_t word) const {
    return handle_bytes_ == 4 ? word & 0xffffffff : word;
  }
  [[nodiscard]] OperationSnapshot operation(MpiCall call,
                                            const std::uint64_t (&words)[ipc::most_words]) const;
  [[nodiscard]] std::optional<OperationSnapshot> request(std::uint64_t word) const;
  void add_requests(CallSnapshot& snapshot, std::uint64_t address) const;
  void receives(OperationSnapshot& snapshot, std::uint64_t source, std::uint64_t tag) const;

  const ipc::RankNotes& notes_;
  const MemoryReader& read_;
  std::size_t handle_bytes_;
};

ObjectSnapshot Reader::object(const ipc::ObjectNote& note) const {
  ObjectSnapshot snapshot;
  snapshot.kind = ObjectKind::made;
  snapshot.type = note.type.get();
  snapshot.is_inter = note.is_inter.get() != 0;
  snapshot.members_hash = note.members_hash.get();
  snapshot.ordinal = note.ordinal.get();
  snapshot.rank = note.rank.get();
  snapshot.maker = note.maker.get();
  snapshot.caller = note.caller.get();
  snapshot.is_freed = note.freed.get() != 0;
  for (const ipc::NoteField<char>& field : note.name) {
    const char letter = field.get();
    if (letter == '\0') break;
    snapshot.name += letter;
  }
  snapshot.name = one_line(snapshot.name);
  return snapshot;
}

ObjectSnapshot Reader::object(std::uint64_t word, ipc::ObjectType type) const {
  ObjectSnapshot snapshot;
  snapshot.type = type;
  const bool is_communicator = type == ipc::ObjectType::communicator;
  const std::uint64_t value = type == ipc::ObjectType::file ? word : handle(word);
  if (notes_.library.handle_bytes.get() == 0) return snapshot;
  if (is_communicator && value == notes_.library.world.get()) snapshot.kind = ObjectKind::world;
  if (is_communicator && value == notes_.library.self.get()) snapshot.kind = ObjectKind::self;
  for (const ipc::ObjectNote& note : notes_.objects) {
    const bool is_this =
        value != 0 && note.handle.get() == value && note.freed.get() == 0 && note.type.get() == type;
    if (is_this) return object(note);
  }
  return snapshot;
}

void Reader::receives(OperationSnapshot& snapshot, std::uint64_t source, std::uint64_t tag) const {
  const auto from = static_cast<std::int32_t>(source);
  const auto with = static_cast<std::int32_t>(tag);
  if (from != notes_.library.any_source.get()) snapshot.source = from;
  if (with != notes_.library.any_tag.get()) snapshot.tag = with;
}

OperationSnapshot Reader::operation(MpiCall call, const std::uint64_t (&words)[ipc::most_words]) const {
  OperationSnapshot snapshot;
  snapshot.call = call;
  snapshot.kind = ipc::entry_of(call).kind;
  const auto number = [&words](std::size_t at) { return static_cast<std::int32_t>(words[at]); };
  switch (snapshot.kind) {
    case CallKind::send:
      snapshot.object = object(words[0], ipc::ObjectType::communicator);
      snapshot.target = number(1);
      snapshot.target_tag = number(2);
      break;
    case CallKind::receive:
      snapshot.object = object(words[0], ipc::ObjectType::communicator);
      receives(snapshot, words[1], words[2]);
      break;
    case CallKind::exchange:
      snapshot.object = object(words[0], ipc::ObjectType::communicator);
      receives(snapshot, words[1], words[2]);
      snapshot.target = number(3);
      snapshot.target_tag = number(4);
      break;
    case CallKind::collective:
      snapshot.object = object(words[0], ipc::ObjectType::communicator);
      if (call == MpiCall::MPI_Finalize) snapshot.object.kind = ObjectKind::world;
      break;
    case CallKind::window:
      snapshot.target = number(1);
      [[fallthrough]];
    case CallKind::window_collective:
    case CallKind::window_epoch:
      snapshot.object = object(words[0], ipc::ObjectType::window);
      break;
    case CallKind::file_collective:
      snapshot.object = object(words[0], ipc::ObjectType::file);
      break;
    case CallKind::plain:
    case CallKind::wait_one:
    case CallKind::wait_all:
    case CallKind::wait_any:
      break;
  }
  return snapshot;
}

std::optional<OperationSnapshot> Reader::request(std::uint64_t word) const {
  const std::uint64_t value = handle(word);
  const ipc::RequestNote& note = notes_.requests[ipc::request_place(value)];
  if (value == 0 || note.handle.get() != value) return std::nullopt;
  const auto peer = static_cast<std::uint64_t>(note.peer.get());
  const auto tag = static_cast<std::uint64_t>(note.tag.get());
  const std::uint64_t words[ipc::most_words] = {note.communicator.get(), peer, tag,
                                                static_cast<std::uint64_t>(note.target.get()),
                                                static_cast<std::uint64_t>(note.target_tag.get())};
  return operation(note.call.get(), words);
}

// Reads the array of requests of a wait from the process's memory.
void Reader::add_requests(CallSnapshot& snapshot, std::uint64_t address) const {
  const std::uint64_t count = std::min(snapshot.request_count, most_requests);
  std::vector<std::byte> handles(count * handle_bytes_);
  if (notes_.library.handle_bytes.get() == 0 || count == 0 || !read_(address, handles)) return;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t value = 0;
    std::memcpy(&value, handles.data() + i * handle_bytes_, handle_bytes_);
    if (auto found = request(value)) snapshot.requests.push_back(std::move(*found));
  }
}

CallSnapshot Reader::call(const ipc::CallNote& note) const {
  std::uint64_t words[ipc::most_words];
  for (std::size_t i = 0; i < ipc::most_words; ++i) words[i] = note.words[i].get();
  CallSnapshot snapshot;
  snapshot.operation = operation(note.call.get(), words);
  snapshot.caller = note.caller.get();
  snapshot.frame = note.frame.get();
  if (snapshot.operation.kind == CallKind::wait_one) {
    snapshot.request_count = 1;
    if (auto found = request(words[0])) snapshot.requests.push_back(std::move(*found));
  } else if (snapshot.operation.kind == CallKind::wait_all || snapshot.operation.kind == CallKind::wait_any) {
    snapshot.request_count = words[1] & 0x7fffffff;
    add_requests(snapshot, words[0]);
  }
  return snapshot;
}

FinaliseSnapshot Reader::finalise() const {
  FinaliseSnapshot snapshot;
  snapshot.is_called = notes_.finalise.is_called.get() != 0;
  snapshot.is_mpich = handle_bytes_ == 4;
  snapshot.loaded_at = notes_.finalise.loaded_at.get();
  for (const ipc::NoteField<char>& field : notes_.finalise.file) {
    const char letter = field.get();
    if (letter == '\0') break;
    snapshot.file += letter;
  }
  return snapshot;
}

// The program's peers are ranks of a communicator, so outside MPI_COMM_WORLD the tag alone decides.
OperationSnapshot Reader::send_of(std::int32_t target, std::uint64_t tag) const {
  OperationSnapshot send;
  send.call = MpiCall::none;
  send.kind = CallKind::send;
  send.object.kind = ObjectKind::world;
  send.target = target;
  send.target_tag = static_cast<std::int32_t>(ipc::program_tag(tag));
  for (const ipc::RequestNote& note : notes_.requests) {
    if (note.handle.get() == 0) continue;
    const auto found = request(note.handle.get());
    const bool is_it = found && found->kind == CallKind::send && found->target_tag == send.target_tag &&
                       (found->object.kind != ObjectKind::world || found->target == send.target);
    if (is_it) return *found;
  }
  return send;
}

// Keeps only the parts that name existing ranks.
ipc::WaitNote read_provider(const ipc::WaitNote& shared, std::uint32_t process_count) {
  const ipc::WaitNote note = shared;
  // From here on use the copy: the process may write again.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const auto count = static_cast<std::int64_t>(process_count);
  ipc::WaitNote snapshot;
  if (note.receives > 0 && note.receive_source >= -1 && note.receive_source < count) {
    snapshot.receives = note.receives;
    snapshot.receive_source = note.receive_source;
    snapshot.receive_tag = note.receive_tag;
  }
  if (note.sends > 0 && note.send_target >= 0 && note.send_target < count) {
    snapshot.sends = note.sends;
    snapshot.send_target = note.send_target;
    snapshot.has_send_tag = note.has_send_tag;
    snapshot.send_tag = note.send_tag;
  }
  if (note.left_sends > 0 && note.left_target >= 0 && note.left_target < count) {
    snapshot.left_sends = note.left_sends;
    snapshot.left_target = note.left_target;
    snapshot.left_tag = note.left_tag;
  }
  const auto is_valid = [count](const ipc::UnreceivedNote& unreceived) {
    return unreceived.count > 0 && unreceived.source >= 0 && unreceived.source < count;
  };
  if (is_valid(note.unreceived)) snapshot.unreceived = note.unreceived;
  if (is_valid(note.unreceived_of_collectives))
    snapshot.unreceived_of_collectives = note.unreceived_of_collectives;
  for (std::size_t i = 0; i + 1 < sizeof note.call && note.call[i] != '\0'; ++i)
    snapshot.call[i] = std::isprint(static_cast<unsigned char>(note.call[i])) != 0 ? note.call[i] : '?';
  return snapshot;
}

}  // namespace

std::string_view name_of(MpiCall call) {
  return ipc::entry_of(call).name;
}

RankSnapshot read_snapshot(const ipc::RankNotes& notes, const ipc::WaitNote& provider,
                           std::uint32_t process_count, const MemoryReader& read) {
  const Reader reader(notes, read);
  RankSnapshot snapshot;
  snapshot.provider = read_provider(provider, process_count);
  for (const ipc::CallNote& note : notes.calls) {
    if (note.call.get() != MpiCall::none) snapshot.calls.push_back(reader.call(note));
  }
  const ipc::WaitNote& known = snapshot.provider;
  if (known.has_send_tag != 0) snapshot.pending_send = reader.send_of(known.send_target, known.send_tag);
  if (known.left_sends > 0) snapshot.left_send = reader.send_of(known.left_target, known.left_tag);
  for (const ipc::ObjectNote& note : notes.objects) {
    if (note.handle.get() != 0) snapshot.objects.push_back(reader.object(note));
  }
  snapshot.finalise = reader.finalise();
  for (const ipc::LockNote& note : notes.locks) {
    if (note.window.get() != 0)
      snapshot.locks.push_back(
          {reader.object(note.window.get(), ipc::ObjectType::window), note.target.get()});
  }
  return snapshot;
}

}  // namespace apenet
