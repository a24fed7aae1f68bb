// The C edge of RMA.
#include "api/extoll/rma2.h"

#include <array>
#include <cinttypes>
#include <cstddef>
#include <cstring>
#include <string>

#include "api/extoll/device.hpp"

namespace {

using apenet::extoll_api::Address;
using apenet::extoll_api::Command;
using apenet::extoll_api::Device;
using apenet::extoll_api::field;
using apenet::extoll_api::is_get;
using apenet::extoll_api::is_quad;
using apenet::extoll_api::most_bytes_of_a_command;
using apenet::extoll_api::Rma;
using apenet::extoll_api::size_mask;
using apenet::native::Inside;

// Ports, connections and regions are numbers in the form of pointers, never read: one that is not open is
// recognised.
template <typename Pointer>
Pointer as_name(std::uint64_t number) {
  return reinterpret_cast<Pointer>(number);  // NOLINT(performance-no-int-to-ptr)
}
std::uint64_t number_of(const void* name) {
  return reinterpret_cast<std::uint64_t>(name);
}

// Calls body(device) inside the library if a port is open.
template <typename Body>
RMA2_ERROR with_library(const Body& body) {
  Device* const device = Device::made();
  if (device == nullptr) return RMA2_ERR_INV_PORT;
  const Inside inside(device->card().client());
  if (!device->rma().is_open()) return RMA2_ERR_INV_PORT;
  return body(*device);
}

// The same if it is this port.
template <typename Body>
RMA2_ERROR with_port(RMA2_Port port, const Body& body) {
  return with_library([&](Device& device) {
    return device.rma().is_open(number_of(port)) ? body(device) : RMA2_ERR_INV_PORT;
  });
}

Address own_address(RMA2_Port port, bool& is_open) {
  Address address;
  is_open = with_port(port, [&](Device& device) {
              address = device.peers().of(device.card().rank());
              return RMA2_SUCCESS;
            }) == RMA2_SUCCESS;
  return address;
}

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

// What a notification is compared with.
struct Wanted {
  RMA2_Command command = RMA2_ANY;
  RMA2_Nodeid nodeid = RMA2_NODEID_ANY;
  RMA2_VPID vpid = RMA2_VPID_ANY;
  RMA2_Notification_Spec type = RMA2_ALL_NOTIFICATIONS;
  RMA2_NLA nla = RMA2_ANY_NLA;
  bool is_last_nla = false;
  RMA2_Class mclass = RMA2_CLASS_ANY;
  std::uint32_t lock = RMA2_LOCK_ANY;
};

bool is_command(RMA2_Command wanted, RMA2_Command command) {
  switch (wanted) {
    case RMA2_ANY:
      return true;
    case RMA2_PUTS:
      return command == RMA2_BT_PUT || command == RMA2_QW_PUT || command == RMA2_IMMEDIATE_PUT;
    case RMA2_GETS:
      return is_get(command) || command == RMA2_GET_BT_RSP || command == RMA2_GET_QW_RSP;
    default:
      return wanted == command;
  }
}

bool matches(RMA2_Notification& noti, const Wanted& wanted) {
  const std::uint64_t end = wanted.is_last_nla ? rma2_noti_get_size(&noti) : 0;
  return is_command(wanted.command, rma2_noti_get_cmd(&noti)) &&
         (wanted.nodeid == RMA2_NODEID_ANY || wanted.nodeid == rma2_noti_get_remote_nodeid(&noti)) &&
         (wanted.vpid == RMA2_VPID_ANY || wanted.vpid == rma2_noti_get_remote_vpid(&noti)) &&
         (wanted.type & rma2_noti_get_notification_type(&noti)) != 0 &&
         (wanted.nla == RMA2_ANY_NLA || wanted.nla == rma2_noti_get_local_address(&noti) + end) &&
         (wanted.mclass == RMA2_CLASS_ANY || wanted.mclass == rma2_noti_get_notiput_class(&noti)) &&
         (wanted.lock == RMA2_LOCK_ANY || wanted.lock == rma2_noti_get_lock_number(&noti));
}

RMA2_ERROR find(RMA2_Port port, const Wanted& wanted, bool waits, const char* call,
                RMA2_Notification** notification) {
  if (notification == nullptr) return RMA2_ERR_ERROR;
  *notification = nullptr;
  return with_port(port, [&](Device& device) {
    RMA2_Notification* const oldest = waits ? device.rma().await(call) : device.rma().probe();
    if (oldest == nullptr) return RMA2_NO_NOTI;
    if (!matches(*oldest, wanted)) return RMA2_ERR_NO_MATCH;
    *notification = oldest;
    return RMA2_SUCCESS;
  });
}

RMA2_ERROR find_lock(RMA2_Port port, std::uint32_t lock, RMA2_Nodeid nodeid, RMA2_VPID vpid, bool waits,
                     const char* call, RMA2_Notification** notification) {
  return find(port,
              {.command = RMA2_LOCK_REQ,
               .nodeid = nodeid,
               .vpid = vpid,
               .type = RMA2_RESPONDER_NOTIFICATION,
               .lock = lock},
              waits, call, notification);
}

RMA2_ERROR find_notification_put(RMA2_Port port, RMA2_Class mclass, RMA2_Nodeid nodeid, RMA2_VPID vpid,
                                 bool waits, const char* call, RMA2_Notification** notification) {
  return find(port,
              {.command = RMA2_NOTIFICATION_PUT,
               .nodeid = nodeid,
               .vpid = vpid,
               .type = RMA2_COMPLETER_NOTIFICATION,
               .mclass = mclass},
              waits, call, notification);
}

}  // namespace

RMA2_ERROR rma2_open(RMA2_Port* port) {
  if (port == nullptr) return RMA2_ERR_ERROR;
  *port = nullptr;
  Device* const device = Device::make();
  if (device == nullptr) return Device::missing() == Device::Missing::card ? RMA2_ERR_NO_DEVICE : RMA2_ERR_FD;
  const Inside inside(device->card().client());
  if (device->rma().is_open() || !device->peers().has_address(device->card().rank()))
    return RMA2_ERR_PORTS_USED;
  if (!device->card().open()) return RMA2_ERR_ERROR;
  const std::uint64_t id = device->next_id();
  if (!device->rma().open(id)) {
    device->card().close();
    return RMA2_ERR_NO_MEM;
  }
  *port = as_name<RMA2_Port>(id);
  return RMA2_SUCCESS;
}

RMA2_ERROR rma2_close(RMA2_Port port) {
  return with_port(port, [](Device& device) {
    device.rma().close();
    device.card().close();
    return RMA2_SUCCESS;
  });
}

RMA2_ERROR rma2_connect(RMA2_Port port, RMA2_Nodeid nodeid, RMA2_VPID vpid, RMA2_Connection_Options options,
                        RMA2_Handle* handle) {
  if (handle == nullptr) return RMA2_ERR_ERROR;
  *handle = nullptr;
  if (options != RMA2_CONN_DEFAULT) return RMA2_ERR_NOT_YET;
  return with_port(port, [&](Device& device) {
    const std::optional<std::uint32_t> target = device.peers().rank_of(nodeid, vpid);
    if (!target) return RMA2_ERR_NO_ROUTE;
    *handle = as_name<RMA2_Handle>(device.rma().connect(*target));
    return RMA2_SUCCESS;
  });
}

RMA2_ERROR rma2_disconnect(RMA2_Port port, RMA2_Handle handle) {
  return with_port(port, [&](Device& device) {
    return device.rma().disconnect(number_of(handle)) ? RMA2_SUCCESS : RMA2_ERR_INV_HANDLE;
  });
}

RMA2_Nodeid rma2_get_nodeid(RMA2_Port port) {
  bool is_open = false;
  const Address address = own_address(port, is_open);
  return is_open ? address.nodeid : RMA2_NODEID_ANY;
}

RMA2_VPID rma2_get_vpid(RMA2_Port port) {
  bool is_open = false;
  const Address address = own_address(port, is_open);
  return is_open ? address.vpid : RMA2_VPID_ANY;
}

RMA2_ERROR rma2_register(RMA2_Port port, void* address, size_t size, RMA2_Region** region) {
  if (address == nullptr || region == nullptr) return RMA2_ERR_ERROR;
  *region = nullptr;
  return with_port(port, [&](Device& device) {
    const std::uint64_t number = device.rma().register_memory(address, size);
    *region = as_name<RMA2_Region*>(number);
    return number == 0 ? RMA2_ERR_NO_MEM : RMA2_SUCCESS;
  });
}

RMA2_ERROR rma2_unregister(RMA2_Port port, RMA2_Region* region) {
  return with_port(port, [&](Device& device) {
    return device.rma().unregister(number_of(region)) ? RMA2_SUCCESS : RMA2_ERR_NO_TABLE;
  });
}

RMA2_ERROR rma2_get_nla(RMA2_Region* region, size_t offset, RMA2_NLA* nla) {
  if (nla == nullptr) return RMA2_ERR_ERROR;
  return with_library([&](Device& device) { return device.rma().nla_of(number_of(region), offset, *nla); });
}

RMA2_ERROR rma2_post_put_bt(RMA2_Port port, RMA2_Handle handle, RMA2_Region* src_region, uint32_t src_offset,
                            uint32_t size, RMA2_NLA dest_address, RMA2_Notification_Spec spec,
                            RMA2_Command_Modifier modifier) {
  return post_from_region(port, handle, command_of(RMA2_BT_PUT, size - 1, spec, modifier), size, src_region,
                          src_offset, dest_address);
}

RMA2_ERROR rma2_post_put_qw(RMA2_Port port, RMA2_Handle handle, RMA2_Region* src_region, uint32_t src_offset,
                            uint32_t size, RMA2_NLA dest_address, RMA2_Notification_Spec spec,
                            RMA2_Command_Modifier modifier) {
  return post_from_region(port, handle, command_of(RMA2_QW_PUT, size - 1, spec, modifier), size, src_region,
                          src_offset, dest_address);
}

RMA2_ERROR rma2_post_get_bt(RMA2_Port port, RMA2_Handle handle, RMA2_Region* src_region, uint32_t src_offset,
                            uint32_t size, RMA2_NLA dest_address, RMA2_Notification_Spec spec,
                            RMA2_Command_Modifier modifier) {
  return post_from_region(port, handle, command_of(RMA2_BT_GET, size - 1, spec, modifier), size, src_region,
                          src_offset, dest_address);
}

RMA2_ERROR rma2_post_get_qw(RMA2_Port port, RMA2_Handle handle, RMA2_Region* src_region, uint32_t src_offset,
                            uint32_t size, RMA2_NLA dest_address, RMA2_Notification_Spec spec,
                            RMA2_Command_Modifier modifier) {
  return post_from_region(port, handle, command_of(RMA2_QW_GET, size - 1, spec, modifier), size, src_region,
                          src_offset, dest_address);
}

RMA2_ERROR rma2_post_put_bt_direct(RMA2_Port port, RMA2_Handle handle, RMA2_NLA src, uint32_t size,
                                   RMA2_NLA dest_address, RMA2_Notification_Spec spec,
                                   RMA2_Command_Modifier modifier) {
  return post_sized(port, handle, command_of(RMA2_BT_PUT, size - 1, spec, modifier), size, src, dest_address);
}

RMA2_ERROR rma2_post_put_qw_direct(RMA2_Port port, RMA2_Handle handle, RMA2_NLA src, uint32_t size,
                                   RMA2_NLA dest_address, RMA2_Notification_Spec spec,
                                   RMA2_Command_Modifier modifier) {
  return post_sized(port, handle, command_of(RMA2_QW_PUT, size - 1, spec, modifier), size, src, dest_address);
}

RMA2_ERROR rma2_post_get_bt_direct(RMA2_Port port, RMA2_Handle handle, RMA2_NLA src, uint32_t size,
                                   RMA2_NLA dest_address, RMA2_Notification_Spec spec,
                                   RMA2_Command_Modifier modifier) {
  return post_sized(port, handle, command_of(RMA2_BT_GET, size - 1, spec, modifier), size, src, dest_address);
}

RMA2_ERROR rma2_post_get_qw_direct(RMA2_Port port, RMA2_Handle handle, RMA2_NLA src, uint32_t size,
                                   RMA2_NLA dest_address, RMA2_Notification_Spec spec,
                                   RMA2_Command_Modifier modifier) {
  return post_sized(port, handle, command_of(RMA2_QW_GET, size - 1, spec, modifier), size, src, dest_address);
}

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

RMA2_ERROR rma2_noti_probe(RMA2_Port port, RMA2_Notification** notification) {
  return find(port, {}, false, "rma2_noti_probe", notification);
}

RMA2_ERROR rma2_noti_get_block(RMA2_Port port, RMA2_Notification** notification) {
  return find(port, {}, true, "rma2_noti_get_block", notification);
}

RMA2_ERROR rma2_noti_match(RMA2_Port port, RMA2_Command cmd, RMA2_Nodeid nodeid, RMA2_VPID vpid,
                           RMA2_Notification_Spec type, RMA2_NLA nla, int flags,
                           RMA2_Notification** notification) {
  const Wanted wanted{.command = cmd,
                      .nodeid = nodeid,
                      .vpid = vpid,
                      .type = type,
                      .nla = nla,
                      .is_last_nla = (flags & RMA2_MATCH_LAST_NLA_FLAG) != 0};
  return find(port, wanted, (flags & RMA2_BLOCK_FLAG) != 0, "rma2_noti_match", notification);
}

RMA2_ERROR rma2_noti_match_block(RMA2_Port port, RMA2_Command cmd, RMA2_Nodeid nodeid, RMA2_VPID vpid,
                                 RMA2_Notification_Spec type, RMA2_NLA nla, int flags,
                                 RMA2_Notification** notification) {
  return rma2_noti_match(port, cmd, nodeid, vpid, type, nla, flags | RMA2_BLOCK_FLAG, notification);
}

RMA2_ERROR rma2_noti_noti_match(RMA2_Port port, RMA2_Class mclass, RMA2_Nodeid nodeid, RMA2_VPID vpid,
                                RMA2_Notification** notification) {
  return find_notification_put(port, mclass, nodeid, vpid, false, "rma2_noti_noti_match", notification);
}

RMA2_ERROR rma2_noti_noti_match_block(RMA2_Port port, RMA2_Class mclass, RMA2_Nodeid nodeid, RMA2_VPID vpid,
                                      RMA2_Notification** notification) {
  return find_notification_put(port, mclass, nodeid, vpid, true, "rma2_noti_noti_match_block", notification);
}

RMA2_ERROR rma2_noti_lock_match(RMA2_Port port, uint32_t lockid, RMA2_Nodeid nodeid, RMA2_VPID vpid,
                                RMA2_Notification** notification) {
  return find_lock(port, lockid, nodeid, vpid, false, "rma2_noti_lock_match", notification);
}

RMA2_ERROR rma2_noti_lock_match_block(RMA2_Port port, uint32_t lockid, RMA2_Nodeid nodeid, RMA2_VPID vpid,
                                      RMA2_Notification** notification) {
  return find_lock(port, lockid, nodeid, vpid, true, "rma2_noti_lock_match_block", notification);
}

RMA2_ERROR rma2_noti_dup(RMA2_Notification* input, RMA2_Notification* output) {
  if (input == nullptr || output == nullptr) return RMA2_ERR_ERROR;
  *output = *input;
  return RMA2_SUCCESS;
}

RMA2_ERROR rma2_noti_free(RMA2_Port port, RMA2_Notification* notification) {
  return with_port(port, [&](Device& device) {
    return device.rma().free(notification) ? RMA2_SUCCESS : RMA2_ERR_INV_VALUE;
  });
}

RMA2_Command rma2_noti_get_cmd(RMA2_Notification* noti) {
  return static_cast<RMA2_Command>(field(noti->word1.value, 51, 0xf));
}

RMA2_Notification_Spec rma2_noti_get_notification_type(RMA2_Notification* noti) {
  return static_cast<RMA2_Notification_Spec>(field(noti->word1.value, 48, 0x7));
}

RMA2_Notification_Modifier rma2_noti_get_mode(RMA2_Notification* noti) {
  return static_cast<RMA2_Notification_Modifier>(field(noti->word1.value, 55, 0x3f));
}

uint8_t rma2_noti_get_error(RMA2_Notification* noti) {
  return static_cast<std::uint8_t>(field(noti->word1.value, 61, 0x7));
}

RMA2_Nodeid rma2_noti_get_remote_nodeid(RMA2_Notification* noti) {
  return static_cast<RMA2_Nodeid>(field(noti->word1.value, 32, 0xffff));
}

RMA2_VPID rma2_noti_get_remote_vpid(RMA2_Notification* noti) {
  return static_cast<RMA2_VPID>(field(noti->word1.value, 23, 0xff));
}

uint64_t rma2_noti_get_local_address(RMA2_Notification* noti) {
  return noti->word0.value;
}

uint32_t rma2_noti_get_size(RMA2_Notification* noti) {
  return static_cast<std::uint32_t>(field(noti->word1.value, 0, size_mask)) + 1;
}

uint32_t rma2_noti_get_lock_value(RMA2_Notification* noti) {
  return static_cast<std::uint32_t>(noti->word0.value >> 32U);
}

uint32_t rma2_noti_get_lock_number(RMA2_Notification* noti) {
  return static_cast<std::uint32_t>(field(noti->word0.value, 0, 0xffffff));
}

uint8_t rma2_noti_get_lock_result(RMA2_Notification* noti) {
  return static_cast<std::uint8_t>(field(noti->word0.value, 24, 0xff));
}

uint64_t rma2_noti_get_notiput_payload(RMA2_Notification* noti) {
  return noti->word0.value;
}

uint8_t rma2_noti_get_notiput_class(RMA2_Notification* noti) {
  return static_cast<std::uint8_t>(field(noti->word1.value, 0, 0xff));
}

void rma2_noti_fdump(RMA2_Notification* noti, FILE* file) {
  std::fprintf(file, "command %u type %u mode %u error %u node %u vpid %u ", rma2_noti_get_cmd(noti),
               rma2_noti_get_notification_type(noti), rma2_noti_get_mode(noti),
               unsigned{rma2_noti_get_error(noti)}, unsigned{rma2_noti_get_remote_nodeid(noti)},
               unsigned{rma2_noti_get_remote_vpid(noti)});
  switch (rma2_noti_get_cmd(noti)) {
    case RMA2_NOTIFICATION_PUT:
      std::fprintf(file, "value 0x%" PRIx64 " class %u\n", rma2_noti_get_notiput_payload(noti),
                   unsigned{rma2_noti_get_notiput_class(noti)});
      break;
    case RMA2_LOCK_REQ:
    case RMA2_LOCK_RSP:
      std::fprintf(file, "lock %u value %u result %u\n", rma2_noti_get_lock_number(noti),
                   rma2_noti_get_lock_value(noti), unsigned{rma2_noti_get_lock_result(noti)});
      break;
    default:
      std::fprintf(file, "address 0x%" PRIx64 " size %u\n", rma2_noti_get_local_address(noti),
                   rma2_noti_get_size(noti));
  }
}

void rma2_noti_dump(RMA2_Notification* noti) {
  rma2_noti_fdump(noti, stdout);
}

const char* rma2_strerror(RMA2_ERROR error) {
  switch (error) {
    case RMA2_SUCCESS:
      return "success";
    case RMA2_ERR_ERROR:
      return "an argument is NULL, or the process has left the simulation";
    case RMA2_ERR_INV_HANDLE:
      return "the connection is not open";
    case RMA2_ERR_INV_PORT:
      return "the port is not open";
    case RMA2_ERR_INV_VALUE:
      return "a size, offset, number or set of bits is out of range, or the notification is not the oldest "
             "one";
    case RMA2_ERR_NO_ROUTE:
      return "no process of the program has this node and vpid";
    case RMA2_ERR_PORTS_USED:
      return "the process has its port already";
    case RMA2_ERR_NO_MEM:
      return "the memory cannot be registered";
    case RMA2_NO_NOTI:
      return "there is no notification";
    case RMA2_ERR_WRONG_ARG:
      return "quad words: an address or the size is no multiple of 8";
    case RMA2_ERR_NOT_YET:
      return "a command modifier or connection option that is not supported";
    case RMA2_ERR_NO_MATCH:
      return "the oldest notification does not match";
    case RMA2_ERR_WRONG_CMD:
      return "not a command that a process can post";
    case RMA2_ERR_NO_DEVICE:
      return "the machine has no EXTOLL card";
    case RMA2_ERR_FD:
      return "there is no simulation: start the program by `apenet run`";
    case RMA2_ERR_NO_TABLE:
      return "the memory region is not registered";
    case RMA2_ERR_PART:
      return "the local memory lies only partly in its region";
    default:
      return "an error that this library does not report";
  }
}

void rma2_serror(RMA2_ERROR error, char* buf, int buflen) {
  if (buf != nullptr && buflen > 0)
    std::snprintf(buf, static_cast<std::size_t>(buflen), "%s", rma2_strerror(error));
}

void rma2_perror(RMA2_ERROR error, const char* header) {
  std::fprintf(stderr, "%s: %s\n", header == nullptr ? "rma2" : header, rma2_strerror(error));
}
