// Active Messages as the conduits carry them: a header of 8 bytes, up to 16 arguments of 4 bytes, and a
// payload.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace apenet::gasnet {

inline constexpr std::size_t max_arguments = 16;
inline constexpr std::size_t max_medium_bytes = 8192;  // Kujat et al. section III.B

using Argument = std::int32_t;

// The memory of a process that the others reach: the segment that it attaches, or all (the specification's
// configurations FAST and LARGE, and EVERYTHING).
enum class Reach : std::uint8_t { segment, everything };

// How the payload of a long message reaches its target.
enum class LongPayload : std::uint8_t {
  in_message,      // with the message
  before_message,  // by a put, which the network completes before a message that is sent after it
  notified,        // by a put that the network reports to the target; the message does not say where it lies
};

// Signals belong to the conduit: they have no handler, and need no credit.
enum class Category : std::uint8_t { short_message, medium, long_message, signal };

// The first 8 bytes of a message. Kujat et al. section III.B: type, number of arguments, handler, length.
struct Header {
  static constexpr std::size_t bytes = 8;
  static constexpr std::uint32_t most_credits = 0xff;

  Category category = Category::signal;
  bool is_reply = false;
  std::uint8_t argument_count = 0;
  std::uint16_t handler = 0;  // to 255: of the client; above: of the library
  std::uint8_t credits = 0;   // given back to the receiver of this message
  std::uint32_t payload_bytes = 0;

  [[nodiscard]] constexpr std::uint64_t encode() const {
    return std::uint64_t{static_cast<std::uint8_t>(category)} | std::uint64_t{is_reply} << 2U |
           std::uint64_t{argument_count} << 3U | std::uint64_t{handler & 0xffU} << 8U |
           std::uint64_t{credits} << 16U | std::uint64_t{handler >> 8U & 1U} << 24U |
           std::uint64_t{payload_bytes} << 32U;
  }
  [[nodiscard]] static constexpr Header decode(std::uint64_t word) {
    return {.category = static_cast<Category>(word & 3U),
            .is_reply = (word >> 2U & 1U) != 0,
            .argument_count = static_cast<std::uint8_t>(word >> 3U & 31U),
            .handler = static_cast<std::uint16_t>((word >> 8U & 0xffU) | (word >> 24U & 1U) << 8U),
            .credits = static_cast<std::uint8_t>(word >> 16U & 0xffU),
            .payload_bytes = static_cast<std::uint32_t>(word >> 32U)};
  }

  // Whether the message carries the address of a long payload, or a payload.
  [[nodiscard]] constexpr bool has_address(LongPayload way) const {
    return category == Category::long_message && (way != LongPayload::notified || payload_bytes == 0);
  }
  [[nodiscard]] constexpr bool has_payload(LongPayload way) const {
    return category == Category::medium ||
           (category == Category::long_message && way == LongPayload::in_message);
  }
  [[nodiscard]] constexpr std::size_t bytes_by_message(LongPayload way) const {
    return bytes + argument_count * sizeof(Argument) + (has_address(way) ? sizeof(std::uint64_t) : 0) +
           (has_payload(way) ? payload_bytes : 0);
  }
};

// Payload of a long message that carries it.
inline constexpr std::size_t max_carried_bytes = 65536;

// Bytes that the message itself carries at most.
[[nodiscard]] constexpr std::size_t largest_request_bytes(LongPayload way) {
  const std::size_t payload = way == LongPayload::in_message ? max_carried_bytes : max_medium_bytes;
  return Header::bytes + max_arguments * sizeof(Argument) + sizeof(std::uint64_t) + payload;
}

// A message to send. The memory that it names is the caller's.
struct Outgoing {
  Header header;
  std::span<const Argument> arguments;
  std::span<const std::byte> payload;
  std::byte* destination = nullptr;  // for a long message: in the target's segment
  bool may_change = true;            // the source of a long message, once the call returns
};

// A message that has arrived whole.
struct Incoming {
  std::uint32_t source = 0;
  Header header;
  std::uint32_t credits_used = 0;  // that a request has taken from its sender, and that its end gives back
  std::array<Argument, max_arguments> arguments{};
  std::vector<std::byte> payload;     // a medium message's payload
  std::byte* long_payload = nullptr;  // in this process's segment
};

}  // namespace apenet::gasnet
