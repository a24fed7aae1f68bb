// The functions of rma2.h that make and post commands.
#include <cstdint>

#include "api/extoll/device.hpp"
#include "api/extoll/rma2.h"
#include "api/extoll/rma2_call.hpp"

namespace {

using apenet::extoll_api::Address;
using apenet::extoll_api::Command;
using apenet::extoll_api::Device;
using apenet::extoll_api::is_get;
using apenet::extoll_api::most_bytes_of_a_command;
using apenet::extoll_api::number_of;
using apenet::extoll_api::Rma;
using apenet::extoll_api::with_library;
using apenet::extoll_api::with_port;

// Makes the first word of a descriptor to the connection's peer. Requires the library's lock.
RMA2_ERROR make_word(Rma& rma, RMA2_Handle handle, Command command, std::uint64_t& word) {
  if (!rma.has_connection(number_of(handle))) return RMA2_ERR_INV_HANDLE;
  const Address peer = rma.peer_of(number_of(handle));
  command.nodeid = peer.nodeid;
  command.vpid = peer.vpid;
  word = command.encode();
  return RMA2_SUCCESS;
}

bool is_spec(RMA2_Notification_Spec spec) {
  return static_cast<unsigned>(spec) <= RMA2_ALL_NOTIFICATIONS;
}
bool is_modifier(RMA2_Command_Modifier modifier) {
  return static_cast<unsigned>(modifier) <= 0xf;
}

struct Words {
  std::uint64_t second = 0;
  std::uint64_t third = 0;
};

Command command_of(RMA2_Command command, std::uint32_t info, RMA2_Notification_Spec spec,
                   RMA2_Command_Modifier modifier) {
  return {.info = info,
          .modifier = static_cast<std::uint8_t>(modifier),
          .notifications = static_cast<std::uint8_t>(spec),
          .command = command};
}

RMA2_ERROR check(std::uint32_t size, std::uint32_t most, RMA2_Notification_Spec spec,
                 RMA2_Command_Modifier modifier) {
  if (!is_spec(spec) || !is_modifier(modifier)) return RMA2_ERR_INV_VALUE;
  return size == 0 || size > most ? RMA2_ERR_INV_VALUE : RMA2_SUCCESS;
}

RMA2_ERROR post(RMA2_Port port, RMA2_Handle handle, const Command& command, Words words) {
  return with_port(port, [&](Device& device) {
    std::uint64_t first = 0;
    const RMA2_ERROR error = make_word(device.rma(), handle, command, first);
    return error != RMA2_SUCCESS ? error : device.rma().post({first, words.second, words.third});
  });
}

RMA2_ERROR post_sized(RMA2_Port port, RMA2_Handle handle, const Command& command, std::uint32_t size,
                      RMA2_NLA local, RMA2_NLA remote) {
  const RMA2_ERROR error =
      check(size, most_bytes_of_a_command, static_cast<RMA2_Notification_Spec>(command.notifications),
            static_cast<RMA2_Command_Modifier>(command.modifier));
  if (error != RMA2_SUCCESS) return error;
  const bool reads = is_get(command.command);
  return post(port, handle, command, reads ? Words{remote, local} : Words{local, remote});
}

RMA2_ERROR post_from_region(RMA2_Port port, RMA2_Handle handle, const Command& command, std::uint32_t size,
                            RMA2_Region* region, std::uint32_t offset, RMA2_NLA remote) {
  RMA2_NLA local = 0;
  const RMA2_ERROR error =
      with_port(port, [&](Device& device) { return device.rma().nla_of(number_of(region), offset, local); });
  return error != RMA2_SUCCESS ? error : post_sized(port, handle, command, size, local, remote);
}

RMA2_ERROR set_descriptor(RMA2_Descriptor* desc, RMA2_Handle handle, const Command& command, Words words) {
  if (desc == nullptr) return RMA2_ERR_ERROR;
  return with_library([&](Device& device) {
    desc->handle = handle;
    desc->value[1] = words.second;
    desc->value[2] = words.third;
    return make_word(device.rma(), handle, command, desc->value[0]);
  });
}

Words lock_words(std::uint32_t number, std::uint32_t compare, std::uint32_t add) {
  return {std::uint64_t{compare} << 32U | number, std::uint64_t{add} << 32U};
}

std::uint64_t low_bytes(std::uint64_t value, std::uint32_t count) {
  return count >= sizeof value ? value : value & ((std::uint64_t{1} << (8 * count)) - 1);
}

}  // namespace

#define APENET_RMA2_POST(name, command)                                                                      \
  RMA2_ERROR rma2_post_##name(RMA2_Port port, RMA2_Handle handle, RMA2_Region* src_region,                   \
                              uint32_t src_offset, uint32_t size, RMA2_NLA dest_address,                     \
                              RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier) {                 \
    return post_from_region(port, handle, command_of(command, size - 1, spec, modifier), size, src_region,   \
                            src_offset, dest_address);                                                       \
  }                                                                                                          \
  RMA2_ERROR rma2_post_##name##_direct(RMA2_Port port, RMA2_Handle handle, RMA2_NLA src, uint32_t size,      \
                                       RMA2_NLA dest_address, RMA2_Notification_Spec spec,                   \
                                       RMA2_Command_Modifier modifier) {                                     \
    return post_sized(port, handle, command_of(command, size - 1, spec, modifier), size, src, dest_address); \
  }
APENET_RMA2_POST(put_bt, RMA2_BT_PUT)
APENET_RMA2_POST(put_qw, RMA2_QW_PUT)
APENET_RMA2_POST(get_bt, RMA2_BT_GET)
APENET_RMA2_POST(get_qw, RMA2_QW_GET)

RMA2_ERROR rma2_post_immediate_put(RMA2_Port port, RMA2_Handle handle, uint32_t count, uint64_t value,
                                   RMA2_NLA dest_address, RMA2_Notification_Spec spec,
                                   RMA2_Command_Modifier modifier) {
  const RMA2_ERROR error = check(count, sizeof value, spec, modifier);
  if (error != RMA2_SUCCESS) return error;
  return post(port, handle, command_of(RMA2_IMMEDIATE_PUT, count - 1, spec, modifier),
              {dest_address, low_bytes(value, count)});
}

RMA2_ERROR rma2_post_notification(RMA2_Port port, RMA2_Handle handle, RMA2_Class mclass, uint64_t value,
                                  RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier) {
  if (!is_spec(spec) || !is_modifier(modifier)) return RMA2_ERR_INV_VALUE;
  return post(port, handle, command_of(RMA2_NOTIFICATION_PUT, mclass, spec, modifier), {value, 0});
}

RMA2_ERROR rma2_post_lock(RMA2_Port port, RMA2_Handle handle, uint32_t target, uint32_t lock_number,
                          int32_t cmp_value, int32_t add_value, RMA2_Notification_Spec spec,
                          RMA2_Command_Modifier modifier) {
  if (!is_spec(spec) || !is_modifier(modifier) || target > 1 || lock_number >= Rma::lock_count)
    return RMA2_ERR_INV_VALUE;
  return post(
      port, handle, command_of(RMA2_LOCK_REQ, target, spec, modifier),
      lock_words(lock_number, static_cast<std::uint32_t>(cmp_value), static_cast<std::uint32_t>(add_value)));
}

RMA2_ERROR rma2_post_descriptor(RMA2_Port port, RMA2_Handle handle, RMA2_Descriptor* desc) {
  if (desc == nullptr) return RMA2_ERR_ERROR;
  return with_port(port, [&](Device& device) {
    if (!device.rma().has_connection(number_of(handle))) return RMA2_ERR_INV_HANDLE;
    return device.rma().post({desc->value[0], desc->value[1], desc->value[2]});
  });
}

RMA2_ERROR rma2_desc_set_put_get(RMA2_Descriptor* desc, RMA2_Handle handle, RMA2_Command command,
                                 uint32_t count, RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier,
                                 uint64_t read_address, uint64_t write_address) {
  if (!is_get(command) && command != RMA2_BT_PUT && command != RMA2_QW_PUT) return RMA2_ERR_WRONG_CMD;
  const RMA2_ERROR error = check(count, most_bytes_of_a_command, spec, modifier);
  if (error != RMA2_SUCCESS) return error;
  return set_descriptor(desc, handle, command_of(command, count - 1, spec, modifier),
                        {read_address, write_address});
}

RMA2_ERROR rma2_desc_set_immediate_put(RMA2_Descriptor* desc, RMA2_Handle handle, RMA2_Notification_Spec spec,
                                       RMA2_Command_Modifier modifier, uint32_t count, uint64_t write_address,
                                       uint64_t value) {
  const RMA2_ERROR error = check(count, sizeof value, spec, modifier);
  if (error != RMA2_SUCCESS) return error;
  return set_descriptor(desc, handle, command_of(RMA2_IMMEDIATE_PUT, count - 1, spec, modifier),
                        {write_address, low_bytes(value, count)});
}

RMA2_ERROR rma2_desc_set_noti_put(RMA2_Descriptor* desc, RMA2_Handle handle, RMA2_Notification_Spec spec,
                                  RMA2_Command_Modifier modifier, RMA2_Class mclass, uint64_t value) {
  if (!is_spec(spec) || !is_modifier(modifier)) return RMA2_ERR_INV_VALUE;
  return set_descriptor(desc, handle, command_of(RMA2_NOTIFICATION_PUT, mclass, spec, modifier), {value, 0});
}

RMA2_ERROR rma2_desc_set_lock(RMA2_Descriptor* desc, RMA2_Handle handle, RMA2_Notification_Spec spec,
                              RMA2_Command_Modifier modifier, uint8_t type, uint32_t lock_number,
                              uint32_t compare, uint32_t add_value) {
  if (!is_spec(spec) || !is_modifier(modifier) || type > 1 || lock_number >= Rma::lock_count)
    return RMA2_ERR_INV_VALUE;
  return set_descriptor(desc, handle, command_of(RMA2_LOCK_REQ, type, spec, modifier),
                        lock_words(lock_number, compare, add_value));
}
