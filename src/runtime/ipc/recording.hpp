// The file that the libraries of the ranks write for `apenet run --record`, and from which the simulator
// makes a trace.
//
// All ranks append to one unnamed file, which disappears with the simulator. A rank appends each chunk, still
// empty, with one call, so that the chunks of several ranks do not mix, and then maps it into its memory. So
// what it has noted is in the file however the rank ends. The order of chunks of different ranks has no
// meaning; the chunks of one rank are in the order of events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace apenet::ipc {

// Environment variable that names the file; absent if nothing is recorded.
inline constexpr const char* recording_variable = "APENET_RECORD";  // path, /proc/PID/fd/N

enum class RecordingKind : std::uint8_t {
  computed,    // the program used the CPU for `value` ps between two library calls
  sent,        // a send to peer: tag, value bytes
  received,    // a receive was posted
  matched,     // that receive has matched a message: peer, tag, value bytes
  put,         // a remote write to peer: value bytes
  got,         // a remote read from peer: value bytes
  ended,       // an operation has ended, and the library has seen its completion
  closed,      // no more entries of the provider follow
  unrecorded,  // the library of interface `value` has begun to post, and its messages are not written here
  site,  // number `site` of the rank's calls of MPI: `address` behind it, in the rank's file `operation`
};

struct RecordingEntry {
  RecordingKind kind = RecordingKind::computed;
  std::uint8_t tagged = 0;      // the tag is one of fi_tsend; other operations have none
  std::uint8_t in_gpu = 0;      // the buffer, or its first piece, is in the memory of the GPU
  std::uint8_t rail = 0;        // number of the node's card that carries the message
  std::uint32_t operation = 0;  // the rank's own number for the operation, starting at 1
  std::uint32_t peer = 0;
  // MpiCall of the call that posted it; ended: that has seen the end; computed: that follows; 0: not known.
  std::uint16_t call = 0;
  std::uint16_t site = 0;  // where the program makes this call, of an earlier or later entry; 0: not known
  std::uint64_t tag = 0;
  std::int64_t value = 0;
  std::uint64_t address = 0;         // sent, matched, put, got: of the buffer in the rank's memory; site
  std::uint64_t remote_address = 0;  // put, got: of the memory in the peer
  std::uint32_t call_number = 0;     // among the thread's calls of this function, from 1
  // How many calls that complete requests (ipc::completes_requests) the rank had begun; computed: without
  // `call`. Not defined where call is 0.
  std::uint32_t completing_calls = 0;
};
static_assert(sizeof(RecordingEntry) == 56);

// Fills whole pages.
struct RecordingChunk {
  static constexpr std::uint32_t expected_magic = 0x41505243;  // "APRC"
  std::uint32_t magic = expected_magic;
  std::uint32_t rank = 0;
  std::uint32_t bytes = 0;    // this chunk, with its header
  std::uint32_t entries = 0;  // number of entries that follow
  // The path of the rank's next file of code, from 0, follows in so many bytes. Such a chunk has no entries.
  std::uint32_t path_bytes = 0;
  // In the first chunk of the file: the error with which some rank could not write, which ends the recording
  // but not the run; 0: none.
  std::uint32_t failed_errno = 0;
};
static_assert(sizeof(RecordingChunk) == 24);
// Appends a chunk with room for at least so many bytes, and maps it; the caller unmaps it. nullptr with errno
// if that fails.
[[nodiscard]] RecordingChunk* append_chunk(int fd, std::uint32_t rank, std::size_t bytes);
// What follows the header.
[[nodiscard]] inline std::byte* content_of(RecordingChunk* chunk) {
  return reinterpret_cast<std::byte*>(chunk + 1);
}
// Notes that a rank could not write. Returns false with errno if there is no room even for that.
[[nodiscard]] bool note_failure(int fd, std::uint32_t rank, int error);

// Opens the file to append to it; the caller closes it. -1 with errno if that fails.
[[nodiscard]] int open_recording(const char* path);
// Why a rank refuses to go on without any note; says errno.
[[nodiscard]] std::string recording_failure();

}  // namespace apenet::ipc
