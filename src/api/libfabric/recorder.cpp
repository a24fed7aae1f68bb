#include "api/libfabric/recorder.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/ipc/mpi_call_table.hpp"

namespace apenet::libfabric {
namespace {

// Where a buffer begins that has bytes; 0: none has.
std::uint64_t begin_of(const message::Buffer& buffer) {
  for (std::uint32_t i = 0; i < buffer.count; ++i) {
    if (buffer.pieces[i].length > 0) return buffer.pieces[i].address;
  }
  return 0;
}

// Whether it begins there in the memory of the GPU.
std::uint8_t begins_in_gpu(const message::Buffer& buffer) {
  for (std::uint32_t i = 0; i < buffer.count; ++i) {
    if (buffer.pieces[i].length > 0) return buffer.is_in_gpu(i) ? 1 : 0;
  }
  return 0;
}

}  // namespace

std::unique_ptr<Recorder> Recorder::from_environment(ipc::Client& client) {
  const char* path = std::getenv(ipc::recording_variable);
  if (path == nullptr) return nullptr;
  const int fd = ipc::open_recording(path);
  if (fd < 0) ipc::Client::refuse(ipc::recording_failure());
  return std::make_unique<Recorder>(client, fd);
}

Recorder::Recorder(ipc::Client& client, int fd) : client_(client), fd_(fd) {}

Recorder::~Recorder() {
  leave_chunk();
  ::close(fd_);
}

std::uint32_t Recorder::sent(std::uint32_t target, bool tagged, std::uint64_t tag,
                             const message::Buffer& buffer, std::uint8_t rail) {
  append({.kind = ipc::RecordingKind::sent,
          .tagged = static_cast<std::uint8_t>(tagged ? 1 : 0),
          .in_gpu = begins_in_gpu(buffer),
          .rail = rail,
          .operation = next_operation_,
          .peer = target,
          .tag = tagged ? tag : 0,
          .value = static_cast<std::int64_t>(buffer.length),
          .address = begin_of(buffer)});
  return next_operation_++;
}

std::uint32_t Recorder::received() {
  append({.kind = ipc::RecordingKind::received, .operation = next_operation_});
  return next_operation_++;
}

void Recorder::matched(std::uint32_t operation, std::uint32_t source, bool tagged, std::uint64_t tag,
                       std::uint64_t bytes, const message::Buffer& buffer, std::uint8_t rail) {
  append({.kind = ipc::RecordingKind::matched,
          .tagged = static_cast<std::uint8_t>(tagged ? 1 : 0),
          .in_gpu = begins_in_gpu(buffer),
          .rail = rail,
          .operation = operation,
          .peer = source,
          .tag = tagged ? tag : 0,
          .value = static_cast<std::int64_t>(bytes),
          .address = begin_of(buffer)});
}

std::uint32_t Recorder::accessed(ipc::RecordingKind kind, std::uint32_t target, const message::Buffer& buffer,
                                 std::uint64_t remote_address, std::uint8_t rail) {
  append({.kind = kind,
          .in_gpu = begins_in_gpu(buffer),
          .rail = rail,
          .operation = next_operation_,
          .peer = target,
          .value = static_cast<std::int64_t>(buffer.length),
          .address = begin_of(buffer),
          .remote_address = remote_address});
  return next_operation_++;
}

void Recorder::ended(std::uint32_t operation) {
  append({.kind = ipc::RecordingKind::ended, .operation = operation});
}

void Recorder::close() {
  append({.kind = ipc::RecordingKind::closed});
}

void Recorder::append(const ipc::RecordingEntry& entry) {
  if (has_failed_) return;
  const std::int64_t outside_ps = client_.block().clock.outside_ps.get();
  const std::int64_t computed_ps = outside_ps - std::exchange(outside_seen_ps_, outside_ps);
  ipc::RecordingEntry named = entry;
  if (const ipc::CallNote* note = ipc::only_note(client_.notes())) name_call(named, *note);
  if (computed_ps > 0) {
    const bool completes = ipc::completes_requests(static_cast<ipc::MpiCall>(named.call));
    write({.kind = ipc::RecordingKind::computed,
           .call = named.call,
           .value = computed_ps,
           .completing_calls = named.completing_calls - (completes ? 1 : 0)});
  }
  write(named);
}

// Notes which MPI call of the program it belongs to, and where that is if it is the first of its site.
void Recorder::name_call(ipc::RecordingEntry& entry, const ipc::CallNote& note) {
  entry.call = static_cast<std::uint16_t>(note.call.get());
  entry.site = call_sites_.of(note);
  entry.call_number = note.number.get();
  entry.completing_calls = ipc::completing_calls(client_.notes());
  for (; written_paths_ < call_sites_.files().size(); ++written_paths_)
    write_path(call_sites_.files()[written_paths_]);
  for (; written_sites_ < call_sites_.sites().size(); ++written_sites_) {
    const CallSites::Site& site = call_sites_.sites()[written_sites_];
    write({.kind = ipc::RecordingKind::site,
           .operation = site.file,
           .site = static_cast<std::uint16_t>(written_sites_ + 1),
           .address = site.address});
  }
}

void Recorder::write(const ipc::RecordingEntry& entry) {
  if (chunk_ == nullptr || chunk_->entries == chunk_entries) next_chunk();
  if (has_failed_) return;
  std::memcpy(ipc::content_of(chunk_) + chunk_->entries * sizeof(entry), &entry, sizeof(entry));
  // The process may be killed at any time: an entry counts when it is complete.
  std::atomic_ref(chunk_->entries).store(chunk_->entries + 1, std::memory_order_release);
}

void Recorder::next_chunk() {
  leave_chunk();
  chunk_ = ipc::append_chunk(fd_, client_.rank(), chunk_entries * sizeof(ipc::RecordingEntry));
  if (chunk_ == nullptr) give_up(errno);
}

void Recorder::leave_chunk() {
  if (chunk_ != nullptr) munmap(chunk_, chunk_->bytes);
  chunk_ = nullptr;
}

void Recorder::write_path(const std::string& path) {
  ipc::RecordingChunk* chunk = ipc::append_chunk(fd_, client_.rank(), path.size());
  if (chunk == nullptr) return give_up(errno);
  std::memcpy(ipc::content_of(chunk), path.data(), path.size());
  chunk->path_bytes = static_cast<std::uint32_t>(path.size());
  munmap(chunk, chunk->bytes);
}

// A trace with a hole in it would replay as something that never ran: there will be none.
void Recorder::give_up(int error) {
  has_failed_ = true;
  if (!ipc::note_failure(fd_, client_.rank(), error)) ipc::Client::refuse(ipc::recording_failure());
}

}  // namespace apenet::libfabric
