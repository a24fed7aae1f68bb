// What the provider of a rank writes down for `apenet run --record`, and the simulator makes a trace of.
//
// All ranks append to one file, which has no name: it is gone when the simulator is. A rank writes whole
// chunks, each with one call, so that those of several ranks do not mix; their order in the file means
// nothing, that of one rank's is the order in which they happened.
#pragma once

#include <cstdint>

namespace apenet::ipc {

// Environment by which a rank finds the file; absent when nothing is recorded.
inline constexpr const char* record_variable = "APENET_RECORD";  // path, /proc/PID/fd/N

enum class RecordKind : std::uint8_t {
  computed,  // the program had the CPU for value ps, between two calls of the library
  sent,      // a send to peer: tag, value bytes
  received,  // a receive was posted
  matched,   // that receive has its message: peer, tag, value bytes
  put,       // a remote write to peer: value bytes
  got,       // a remote read from peer: value bytes
  ended,     // an operation has ended, and the library knows it
  closed,    // nothing more will come
};

struct RecordEntry {
  RecordKind kind = RecordKind::computed;
  std::uint8_t tagged = 0;  // the tag is one of fi_tsend; of the others there is none
  std::uint16_t reserved = 0;
  std::uint32_t operation = 0;  // the rank's own number for it, from 1
  std::uint32_t peer = 0;
  std::uint32_t reserved_2 = 0;
  std::uint64_t tag = 0;
  std::int64_t value = 0;
};
static_assert(sizeof(RecordEntry) == 32);

struct RecordChunk {
  static constexpr std::uint32_t expected_magic = 0x41505243;  // "APRC"
  std::uint32_t magic = expected_magic;
  std::uint32_t rank = 0;
  std::uint32_t entries = 0;  // that follow
  std::uint32_t reserved = 0;
};
static_assert(sizeof(RecordChunk) == 16);

}  // namespace apenet::ipc
