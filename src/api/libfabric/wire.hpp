// The provider's own part of the wire format: the name of an endpoint, and atomic operations. Messages and
// remote accesses are those of message/wire.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "api/libfabric/atomic_ops.hpp"
#include "message/wire.hpp"

namespace apenet::libfabric {

using message::AccessFault;
using message::MalformedMessage;
using message::MessageHeader;
using message::MessageKind;
using message::segment_limit;

// Name of an endpoint, as fi_getname gives it and fi_av_insert takes it.
struct EndpointName {
  static constexpr std::uint32_t expected_magic = 0x41504531;  // "APE1"
  static constexpr std::uint32_t any_number = 0xffffffff;      // for an endpoint that is to get a number
  std::uint32_t magic = expected_magic;
  std::uint32_t rank = 0;
  std::uint32_t endpoint = 0;  // number of the endpoint in its process
  std::uint32_t rail = 0;      // rail of its domain: see ipc::Header
};
static_assert(sizeof(EndpointName) == 16);

// Follows the header of a request, and is followed by its operands and comparands: one part of an operation,
// as large as fits a message.
struct AtomicBody {
  std::uint64_t address = 0;
  std::uint32_t transfer = 0;  // the sender's number
  std::uint32_t offset = 0;    // offset of this part among all operands, in bytes
  std::uint16_t count = 0;     // elements
  std::uint8_t form = 0;       // AtomicForm
  std::uint8_t type = 0;       // fi_datatype
  std::uint8_t op = 0;         // fi_op
  std::uint8_t is_last = 0;    // part of the operation
  std::uint16_t reserved = 0;
};
static_assert(sizeof(AtomicBody) == 24);
inline constexpr std::size_t atomic_payload_bytes = 128;  // bytes of operands and comparands, or of an answer
inline constexpr std::size_t atomic_message_bytes =
    sizeof(MessageHeader) + sizeof(AtomicBody) + atomic_payload_bytes;
static_assert(atomic_message_bytes <= message::inline_bytes);

// Follows the header of its answer, and is followed by what the elements were.
struct AtomicAnswer {
  std::uint32_t transfer = 0;
  std::uint32_t offset = 0;
  AccessFault fault = AccessFault::none;
  std::uint8_t reserved[7] = {};
};
static_assert(sizeof(AtomicAnswer) == 16);

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
  if (answer.fault > AccessFault::not_allowed) throw MalformedMessage("an answer with an unknown fault");
  return answer;
}

}  // namespace apenet::libfabric
