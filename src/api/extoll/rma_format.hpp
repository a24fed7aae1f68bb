// The published bit formats of RMA's notifications and descriptors.
#pragma once

#include <cstdint>

#include "api/extoll/peers.hpp"
#include "api/extoll/rma2.h"

namespace apenet::extoll_api {

inline constexpr std::uint64_t size_mask = (std::uint64_t{1} << 23U) - 1;
inline constexpr std::uint32_t most_bytes_of_a_command = 1U << 23U;

[[nodiscard]] constexpr std::uint64_t field(std::uint64_t word, unsigned shift, std::uint64_t mask) {
  return word >> shift & mask;
}

struct Notice {
  std::uint64_t word0 = 0;
  std::uint32_t info = 0;  // size - 1, or the class of a notification put
  RMA2_Command command = RMA2_BT_PUT;
  RMA2_Notification_Spec type = RMA2_COMPLETER_NOTIFICATION;
  Address remote;
  std::uint8_t error = 0;  // RMA2_Notification_Error

  [[nodiscard]] static Notice decode(const RMA2_Notification& notification) {
    const std::uint64_t word1 = notification.word1.value;
    return {.word0 = notification.word0.value,
            .info = static_cast<std::uint32_t>(field(word1, 0, size_mask)),
            .command = static_cast<RMA2_Command>(field(word1, 51, 0xf)),
            .type = static_cast<RMA2_Notification_Spec>(field(word1, 48, 0x7)),
            .remote = {static_cast<std::uint16_t>(field(word1, 32, 0xffff)),
                       static_cast<std::uint8_t>(field(word1, 23, 0xff))},
            .error = static_cast<std::uint8_t>(field(word1, 61, 0x7))};
  }

  [[nodiscard]] RMA2_Notification encode() const {
    return {{word0},
            {(info & size_mask) | std::uint64_t{remote.vpid} << 23U | std::uint64_t{remote.nodeid} << 32U |
             std::uint64_t{type} << 48U | std::uint64_t{command} << 51U | std::uint64_t{RMA2_NOTI_TE} << 55U |
             std::uint64_t{error} << 61U}};
  }
};

[[nodiscard]] constexpr std::uint64_t lock_word(std::uint32_t value, bool succeeded, std::uint32_t number) {
  return std::uint64_t{value} << 32U | std::uint64_t{succeeded} << 24U | (number & 0xffffffU);
}

// The first word of a descriptor; the other two depend on the command.
struct Command {
  std::uint32_t info = 0;  // size - 1; class of a notification put; target of a lock
  std::uint8_t modifier = 0;
  std::uint8_t notifications = 0;
  RMA2_Command command = RMA2_BT_PUT;
  std::uint16_t nodeid = 0;
  std::uint8_t vpid = 0;

  static Command decode(std::uint64_t word) {
    return {.info = static_cast<std::uint32_t>(field(word, 40, size_mask)),
            .modifier = static_cast<std::uint8_t>(field(word, 35, 0xf)),
            .notifications = static_cast<std::uint8_t>(field(word, 32, 0x7)),
            .command = static_cast<RMA2_Command>(field(word, 2, 0xf)),
            .nodeid = static_cast<std::uint16_t>(field(word, 16, 0xffff)),
            .vpid = static_cast<std::uint8_t>(field(word, 8, 0xff))};
  }
  [[nodiscard]] std::uint64_t encode() const {
    return (info & size_mask) << 40U | std::uint64_t{modifier} << 35U | std::uint64_t{notifications} << 32U |
           std::uint64_t{nodeid} << 16U | std::uint64_t{vpid} << 8U | std::uint64_t{command} << 2U | 3U;
  }
};

// A network logical address: the number of a region of its process, and the offset in it. The format is the
// library's own. Region 0 is the process's locks.
struct Nla {
  static constexpr unsigned offset_bits = 40;
  static constexpr std::uint64_t offset_mask = (std::uint64_t{1} << offset_bits) - 1;
  static constexpr std::uint64_t last_region = (std::uint64_t{1} << (64 - offset_bits)) - 2;

  [[nodiscard]] static constexpr RMA2_NLA make(std::uint64_t region, std::uint64_t offset) {
    return region << offset_bits | (offset & offset_mask);
  }
  [[nodiscard]] static constexpr std::uint64_t region(RMA2_NLA nla) { return nla >> offset_bits; }
  [[nodiscard]] static constexpr std::uint64_t offset(RMA2_NLA nla) { return nla & offset_mask; }
};

// Request::immediate of RMA's requests. The highest bit distinguishes them from those of VELO, whose status
// words have it clear.
struct Label {
  static constexpr std::uint64_t mark = std::uint64_t{1} << 63U;

  std::uint64_t offset = 0;  // offset of the remote NLA, whose region is Request::key
  RMA2_Command command = RMA2_BT_PUT;
  std::uint8_t mclass = 0;

  [[nodiscard]] static constexpr bool is_label(std::uint64_t immediate) { return (immediate & mark) != 0; }
  [[nodiscard]] std::uint64_t encode() const {
    return mark | std::uint64_t{mclass} << 44U | std::uint64_t{command} << 40U | offset;
  }
  static Label decode(std::uint64_t word) {
    return {word & Nla::offset_mask, static_cast<RMA2_Command>(field(word, 40, 0xf)),
            static_cast<std::uint8_t>(field(word, 44, 0xff))};
  }
};

[[nodiscard]] constexpr bool is_get(RMA2_Command command) {
  return command == RMA2_BT_GET || command == RMA2_QW_GET;
}
[[nodiscard]] constexpr bool is_quad(RMA2_Command command) {
  return command == RMA2_QW_GET || command == RMA2_QW_PUT;
}

}  // namespace apenet::extoll_api
