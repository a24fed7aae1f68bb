// The wire format of messages: what the engine puts in front of a payload.
//
// Every message of a process to another carries the next number of that (source, target) pair, so that a card
// whose routes are adaptive may deliver them in any order. Little-endian, as the hosts are. Decoding checks
// every length: a header that is not ours is a MalformedMessage, never undefined behaviour.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>

#include "message/requests.hpp"

namespace apenet::message {

class MalformedMessage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class MessageKind : std::uint8_t {
  eager_tagged = 1,
  eager_plain = 2,   // matched in order of posting only
  ready_tagged = 3,  // request to send: the payload stays with the sender until the receiver has matched
  ready_plain = 4,
  clear = 5,        // clear to send: where the receiver wants it
  read_notice = 6,  // memory has been read; tag: the key
  request = 7,      // for the library above the engine: delivered in order, never matched
  answer = 8,       // the same
  piece = 9,        // a further piece of an eager message
};

struct MessageHeader {
  MessageKind kind = MessageKind::eager_plain;
  std::uint8_t has_data = 0;  // `data` was given by the program (FI_REMOTE_CQ_DATA)
  std::uint16_t source_endpoint = 0;
  std::uint16_t target_endpoint = 0;
  std::uint16_t pieces_to_come = 0;  // pieces of this eager message
  std::uint32_t sequence = 0;        // number for the (source, target) pair
  std::uint32_t data = 0;
  std::uint64_t tag = 0;
};
static_assert(sizeof(MessageHeader) == 24);

// Follows the header of ready_*.
struct ReadyBody {
  std::uint64_t length = 0;    // length of the whole message
  std::uint32_t transfer = 0;  // the sender's number for it
  std::uint32_t reserved = 0;
};
static_assert(sizeof(ReadyBody) == 16);

inline constexpr std::size_t segment_limit = 4;  // pieces of one buffer: iov_limit

// A piece of memory of the receiver.
struct Segment {
  std::uint64_t address = 0;
  std::uint64_t length = 0;
};

// Follows the header of clear. No segments: the receiver wants no byte of it, the sender is done.
struct ClearBody {
  std::uint32_t transfer = 0;  // the sender's number
  std::uint32_t receive = 0;   // the receiver's number, comes back with every put
  std::uint32_t segment_count = 0;
  std::uint32_t gpu_segments = 0;  // one bit a segment: the card writes it to the memory of the GPU
  std::array<Segment, segment_limit> segments;
};
static_assert(sizeof(ClearBody) == 16 + segment_limit * sizeof(Segment));
static_assert(sizeof(MessageHeader) + sizeof(ClearBody) == control_bytes);

enum class PutNoticeKind : std::uint8_t { rendezvous = 1, remote_data = 2, remote_write = 3 };

// Content of the 64 bits that the card carries beside the data of a put.
struct PutNotice {
  PutNoticeKind kind = PutNoticeKind::rendezvous;
  std::uint16_t endpoint = 0;
  std::uint32_t value = 0;  // rendezvous: the receiver's number; remote_data: the program's data; else 0

  [[nodiscard]] constexpr std::uint64_t encode() const {
    return std::uint64_t{static_cast<std::uint8_t>(kind)} << 56 | std::uint64_t{endpoint} << 32 | value;
  }
  [[nodiscard]] static PutNotice decode(std::uint64_t immediate) {
    const auto kind_byte = static_cast<std::uint8_t>(immediate >> 56);
    if (kind_byte < 1 || kind_byte > 3 || (immediate >> 48 & 0xff) != 0) {
      throw MalformedMessage("a put with an unknown notice");
    }
    return {static_cast<PutNoticeKind>(kind_byte), static_cast<std::uint16_t>(immediate >> 32 & 0xffff),
            static_cast<std::uint32_t>(immediate)};
  }
};

// In place of a notice: the request is a copied message, of whose way out the library only takes note.
inline constexpr std::uint64_t copied_message = std::uint64_t{0xff} << 56U;

[[nodiscard]] inline bool is_ready(MessageKind kind) {
  return kind == MessageKind::ready_tagged || kind == MessageKind::ready_plain;
}
[[nodiscard]] inline bool is_eager(MessageKind kind) {
  return kind == MessageKind::eager_tagged || kind == MessageKind::eager_plain;
}
// Never matched, and always inside its event.
[[nodiscard]] inline bool is_control(MessageKind kind) {
  return kind >= MessageKind::clear && kind != MessageKind::piece;
}
[[nodiscard]] inline bool is_tagged(MessageKind kind) {
  return kind == MessageKind::eager_tagged || kind == MessageKind::ready_tagged;
}

[[nodiscard]] inline MessageHeader decode_header(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(MessageHeader)) throw MalformedMessage("a message shorter than its header");
  MessageHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const auto kind = static_cast<std::uint8_t>(header.kind);
  if (kind < static_cast<std::uint8_t>(MessageKind::eager_tagged) ||
      kind > static_cast<std::uint8_t>(MessageKind::piece)) {
    throw MalformedMessage("a message of unknown kind");
  }
  return header;
}

[[nodiscard]] inline ReadyBody decode_ready(std::span<const std::byte> body) {
  if (body.size() != sizeof(ReadyBody)) throw MalformedMessage("a request to send of the wrong length");
  ReadyBody ready;
  std::memcpy(&ready, body.data(), sizeof(ready));
  return ready;
}

// Bytes of a clear message with `count` segments, header excluded.
[[nodiscard]] constexpr std::size_t clear_bytes(std::size_t count) {
  return 16 + count * sizeof(Segment);
}

[[nodiscard]] inline ClearBody decode_clear(std::span<const std::byte> body) {
  ClearBody clear;
  if (body.size() < clear_bytes(0) || body.size() > sizeof(ClearBody)) {
    throw MalformedMessage("a clear to send of the wrong length");
  }
  std::memcpy(static_cast<void*>(&clear), body.data(), body.size());
  if (clear.segment_count > segment_limit || body.size() != clear_bytes(clear.segment_count)) {
    throw MalformedMessage("a clear to send whose segments do not fit it");
  }
  if (clear.gpu_segments >> clear.segment_count != 0) {
    throw MalformedMessage("a clear to send with a GPU's memory beyond its segments");
  }
  return clear;
}

}  // namespace apenet::message
