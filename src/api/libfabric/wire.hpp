// The wire format of the provider: what it puts in front of a payload, and the name of an endpoint. All of
// it.
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

#include "api/libfabric/atomic_ops.hpp"
#include "runtime/ipc/protocol.hpp"

namespace apenet::libfabric {

class MalformedMessage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Name of an endpoint, as fi_getname gives it and fi_av_insert takes it.
struct EndpointName {
  static constexpr std::uint32_t expected_magic = 0x41504531;  // "APE1"
  static constexpr std::uint32_t any_number = 0xffffffff;      // of an endpoint that is to get one
  std::uint32_t magic = expected_magic;
  std::uint32_t rank = 0;
  std::uint32_t endpoint = 0;  // number of the endpoint in its process
  std::uint32_t reserved = 0;
};
static_assert(sizeof(EndpointName) == 16);

enum class MessageKind : std::uint8_t {
  eager_tagged = 1,
  eager_plain = 2,   // fi_send: matched in order of posting only
  ready_tagged = 3,  // request to send: the payload stays with the sender until the receiver has matched
  ready_plain = 4,
  clear = 5,          // clear to send: where the receiver wants it
  atomic = 6,         // change memory; tag: the key
  atomic_answer = 7,  // what it was, and whether it was changed
  read_notice = 8,    // memory has been read; tag: the key
};

struct MessageHeader {
  MessageKind kind = MessageKind::eager_plain;
  std::uint8_t has_data = 0;  // `data` was given by the program (FI_REMOTE_CQ_DATA)
  std::uint16_t source_endpoint = 0;
  std::uint16_t target_endpoint = 0;
  std::uint16_t reserved = 0;
  std::uint32_t sequence = 0;  // of the (source, target) pair
  std::uint32_t data = 0;
  std::uint64_t tag = 0;
};
static_assert(sizeof(MessageHeader) == 24);

// Follows the header of ready_*.
struct ReadyBody {
  std::uint64_t length = 0;    // of the whole message
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
  std::uint32_t reserved = 0;
  std::array<Segment, segment_limit> segments;
};
static_assert(sizeof(ClearBody) == 16 + segment_limit * sizeof(Segment));
static_assert(sizeof(MessageHeader) + sizeof(ClearBody) == ipc::control_bytes);

// Follows the header of atomic, and is followed by its operands and comparands: one part of an operation, as
// large as fits a message.
struct AtomicBody {
  std::uint64_t address = 0;
  std::uint32_t transfer = 0;  // the sender's number
  std::uint32_t offset = 0;    // of this part among all operands, in bytes
  std::uint16_t count = 0;     // elements
  std::uint8_t form = 0;       // AtomicForm
  std::uint8_t type = 0;       // fi_datatype
  std::uint8_t op = 0;         // fi_op
  std::uint8_t is_last = 0;    // part of the operation
  std::uint16_t reserved = 0;
};
static_assert(sizeof(AtomicBody) == 24);
inline constexpr std::size_t atomic_payload_bytes = 128;  // of operands and comparands, or of an answer
inline constexpr std::size_t atomic_message_bytes =
    sizeof(MessageHeader) + sizeof(AtomicBody) + atomic_payload_bytes;
static_assert(atomic_message_bytes <= ipc::inline_bytes);

// Follows the header of atomic_answer, and is followed by what the elements were.
struct AtomicAnswer {
  std::uint32_t transfer = 0;
  std::uint32_t offset = 0;
  ipc::AccessFault fault = ipc::AccessFault::none;
  std::uint8_t reserved[7] = {};
};
static_assert(sizeof(AtomicAnswer) == 16);

// What a put tells its target, in the 64 bits that the card carries beside the data.
struct PutNotice {
  enum class Kind : std::uint8_t { rendezvous = 1, remote_data = 2, remote_write = 3 };
  Kind kind = Kind::rendezvous;
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
    return {static_cast<Kind>(kind_byte), static_cast<std::uint16_t>(immediate >> 32 & 0xffff),
            static_cast<std::uint32_t>(immediate)};
  }
};

[[nodiscard]] inline bool is_ready(MessageKind kind) {
  return kind == MessageKind::ready_tagged || kind == MessageKind::ready_plain;
}
// Never matched, and always inside its event.
[[nodiscard]] inline bool is_control(MessageKind kind) {
  return kind >= MessageKind::clear;
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
      kind > static_cast<std::uint8_t>(MessageKind::read_notice)) {
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
  return clear;
}

[[nodiscard]] inline AtomicBody decode_atomic(std::span<const std::byte> bytes) {
  AtomicBody body;
  if (bytes.size() < sizeof(body)) throw MalformedMessage("an atomic operation shorter than its header");
  std::memcpy(&body, bytes.data(), sizeof(body));
  if (!is_valid(body.form, body.type, body.op))
    throw MalformedMessage("an atomic operation that its datatype does not have");
  const bool compares = body.form == static_cast<std::uint8_t>(AtomicForm::compare);
  const std::size_t operands = body.op == FI_ATOMIC_READ ? 0 : compares ? 2 : 1;
  const std::size_t length = body.count * bytes_of(static_cast<fi_datatype>(body.type));
  if (length > atomic_payload_bytes || bytes.size() != sizeof(body) + operands * length)
    throw MalformedMessage("an atomic operation whose operands do not fit it");
  return body;
}

[[nodiscard]] inline AtomicAnswer decode_answer(std::span<const std::byte> bytes) {
  AtomicAnswer answer;
  if (bytes.size() < sizeof(answer)) throw MalformedMessage("an answer shorter than its header");
  std::memcpy(&answer, bytes.data(), sizeof(answer));
  if (answer.fault > ipc::AccessFault::not_allowed) throw MalformedMessage("an answer with an unknown fault");
  return answer;
}

}  // namespace apenet::libfabric
