#include "api/libfabric/recorder.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

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
  return std::make_unique<Recorder>(client, ipc::open_recording(path));
}

Recorder::Recorder(ipc::Client& client, int fd) : client_(client), fd_(fd) {
  chunk_.resize(sizeof(ipc::RecordingChunk) + chunk_entries * sizeof(ipc::RecordingEntry));
}

Recorder::~Recorder() {
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
  flush();
}

void Recorder::append(const ipc::RecordingEntry& entry) {
  if (has_failed_) return;
  const std::int64_t outside_ps = client_.block().clock.outside_ps.get();
  const std::int64_t computed_ps = outside_ps - std::exchange(outside_seen_ps_, outside_ps);
  const auto write = [this](const ipc::RecordingEntry& next) {
    if (entries_ == chunk_entries) flush();
    std::memcpy(chunk_.data() + sizeof(ipc::RecordingChunk) + entries_++ * sizeof(next), &next, sizeof(next));
  };
  if (computed_ps > 0) write({.kind = ipc::RecordingKind::computed, .value = computed_ps});
  ipc::RecordingEntry named = entry;
  named.call = static_cast<std::uint32_t>(ipc::only_call(client_.notes()));
  write(named);
}

void Recorder::flush() {
  ipc::RecordingChunk header;
  header.rank = client_.rank();
  header.entries = std::exchange(entries_, 0);
  std::memcpy(chunk_.data(), &header, sizeof(header));
  const std::size_t bytes = sizeof(header) + header.entries * sizeof(ipc::RecordingEntry);
  if (!write_chunk(bytes)) give_up(errno);
}

bool Recorder::write_chunk(std::size_t bytes) {
  errno = ENOSPC;  // that of a write which comes to a limit half-way
  // In one call, or chunks of several ranks would mix.
  return ::write(fd_, chunk_.data(), bytes) == static_cast<ssize_t>(bytes);
}

// A trace with a hole in it would replay as something that never ran: there will be none.
void Recorder::give_up(int error) {
  has_failed_ = true;
  ipc::RecordingChunk failure;
  failure.rank = client_.rank();
  failure.failed_errno = static_cast<std::uint32_t>(error);
  std::memcpy(chunk_.data(), &failure, sizeof(failure));
  if (ftruncate(fd_, 0) != 0 || !write_chunk(sizeof(failure))) ipc::fail_recording("write");
}

}  // namespace apenet::libfabric
