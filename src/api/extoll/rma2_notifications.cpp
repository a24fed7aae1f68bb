// The functions of rma2.h that take, match and read notifications.
#include <cinttypes>
#include <cstdint>
#include <cstdio>

#include "api/extoll/device.hpp"
#include "api/extoll/rma2.h"
#include "api/extoll/rma2_call.hpp"

namespace {

using apenet::extoll_api::Device;
using apenet::extoll_api::field;
using apenet::extoll_api::is_get;
using apenet::extoll_api::size_mask;
using apenet::extoll_api::with_port;

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
