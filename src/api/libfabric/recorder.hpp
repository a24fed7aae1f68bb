// Recorder: writes down what a process sends, receives and computes, for `apenet run --record`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "api/libfabric/call_sites.hpp"
#include "message/buffer.hpp"
#include "runtime/ipc/client.hpp"
#include "runtime/ipc/recording.hpp"
#include "runtime/ipc/wait_note.hpp"

namespace apenet::libfabric {

// Numbers the operations of a process from 1. In front of each entry goes what the program has computed since
// the one before: the time between calls of the library. What the library itself costs is not recorded, since
// a replay charges it anew.
class Recorder {
 public:
  // nullptr when the environment asks for no recording. Ends the process with a message when the file that it
  // names cannot be used.
  static std::unique_ptr<Recorder> from_environment(ipc::Client& client);
  Recorder(ipc::Client& client, int fd);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  std::uint32_t sent(std::uint32_t target, bool tagged, std::uint64_t tag, const message::Buffer& buffer,
                     std::uint8_t rail);
  std::uint32_t received();
  void matched(std::uint32_t operation, std::uint32_t source, bool tagged, std::uint64_t tag,
               std::uint64_t bytes, const message::Buffer& buffer, std::uint8_t rail);
  // put, got; remote_address: of the memory in the target.
  std::uint32_t accessed(ipc::RecordingKind kind, std::uint32_t target, const message::Buffer& buffer,
                         std::uint64_t remote_address, std::uint8_t rail);
  void ended(std::uint32_t operation);
  // Nothing more will come, unless something does.
  void close();

 private:
  static constexpr std::size_t chunk_entries = 292;  // four pages of 4 KiB

  void append(const ipc::RecordingEntry& entry);
  void write(const ipc::RecordingEntry& entry);
  void name_call(ipc::RecordingEntry& entry, const ipc::CallNote& note);
  void write_path(const std::string& path);
  void next_chunk();
  void leave_chunk();
  void give_up(int error);

  ipc::Client& client_;
  int fd_;
  std::uint32_t next_operation_ = 1;
  std::int64_t outside_seen_ps_ = 0;
  ipc::RecordingChunk* chunk_ = nullptr;  // nullptr: none was needed yet
  CallSites call_sites_;
  std::size_t written_sites_ = 0;
  std::size_t written_paths_ = 0;
  bool has_failed_ = false;
};

}  // namespace apenet::libfabric
