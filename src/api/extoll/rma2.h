/* rma2.h: RMA, EXTOLL's engine for remote memory access, by the names of its user library.
 *
 * A put or get moves up to 2^23 bytes between memory that both processes have registered. Network logical
 * addresses (NLA) name registered memory. A notification reports the end of an operation to the process that
 * asked for the report. Notifications of a process form one queue. Every call reads the oldest one, which
 * stays the oldest until rma2_noti_free().
 *
 * A process has one port. Link with libapenet-extoll and start the program by `apenet run` on a machine with
 * an EXTOLL card. docs/apis/extoll.md says what each call costs and what is not supported. */
#ifndef APENET_RMA2_H
#define APENET_RMA2_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RMA2_PUBLIC __attribute__((visibility("default")))

typedef enum {
  RMA2_SUCCESS = 0,
  RMA2_ERR_ERROR = -1,      /* an argument is NULL, or the process has left the simulation */
  RMA2_ERR_INV_HANDLE = -2, /* a connection that is not open */
  RMA2_ERR_INV_PORT = -3,   /* a port that is not open */
  RMA2_ERR_INV_VALUE = -4,  /* size or offset out of range; not the oldest notification */
  RMA2_ERR_NO_ROUTE = -5,   /* no process has this node and vpid */
  RMA2_ERR_PORTS_USED = -6, /* the process has its port already */
  RMA2_ERR_NO_MEM = -7,     /* memory cannot be registered */
  RMA2_NO_NOTI = -9,        /* no notification is there */
  RMA2_ERR_POLL_EXCEEDED = -10,
  RMA2_ERR_WRONG_ARG = -11, /* quad words: address or size is no multiple of 8 */
  RMA2_ERR_NOT_YET = -12,   /* a modifier or option that this library does not support */
  RMA2_ERR_NO_DESC_MEM = -13,
  RMA2_ERR_NO_MATCH = -15,  /* the oldest notification is another one */
  RMA2_ERR_WRONG_CMD = -16, /* not a command that a process posts */
  RMA2_ERR_NO_DEVICE = -17, /* the machine has no EXTOLL card */
  RMA2_ERR_NO_CONNECT = -18,
  RMA2_ERR_INVALID_VERSION = -22,
  RMA2_ERR_IOCTL = -23,
  RMA2_ERR_MMAP = -24,
  RMA2_ERR_FD = -25, /* the program was not started by `apenet run` */
  RMA2_ERR_MAP = -26,
  RMA2_ERR_DOUBLE_MAP = 27,
  RMA2_ERR_NO_TABLE = 28, /* the region, or the region of a local NLA, is not registered */
  RMA2_ERR_NOT_FREE = 29,
  RMA2_ERR_PART = 30, /* local memory that lies only partly in its region */
  RMA2_ERR_ATU = 31,
  RMA2_ERR_MLOCKLIMIT = 32
} RMA2_ERROR;

typedef uint16_t RMA2_Nodeid;
typedef uint16_t RMA2_VPID; /* the process on its node, from 0 */
typedef uint64_t RMA2_NLA;
typedef uint8_t RMA2_Class;

/* Names of the library's objects, not to be read. */
typedef struct RMA2_Endpoint* RMA2_Port;
typedef struct RMA2_Connection* RMA2_Handle;
typedef struct RMA2_Region RMA2_Region;

typedef enum {
  RMA2_NO_NOTIFICATION = 0,
  RMA2_REQUESTER_NOTIFICATION = 1, /* put: the source has been read; get: the request has left */
  RMA2_RESPONDER_NOTIFICATION = 2, /* get, to the target: the source has been read */
  RMA2_COMPLETER_NOTIFICATION = 4, /* put, to the target; get, to the origin: the data is in memory */
  RMA2_REQCOMPL_NOTIFICATION = 5,
  RMA2_RESPCOMPL_NOTIFICATION = 6,
  RMA2_ALL_NOTIFICATIONS = 7
} RMA2_Notification_Spec;

typedef enum {
  RMA2_CONN_PHYSICAL = 0,
  RMA2_CONN_TC0 = 0,
  RMA2_CONN_TC1 = 1,
  RMA2_CONN_TC2 = 2,
  RMA2_CONN_TC3 = 3,
  RMA2_CONN_RRA = 4,
  RMA2_CONN_IRQ = 8,
  RMA2_CONN_TE = 16,
  RMA2_CONN_DEFAULT = 16 /* the only one supported */
} RMA2_Connection_Options;

typedef enum {
  RMA2_BT_GET = 0,
  RMA2_QW_GET = 1,
  RMA2_BT_PUT = 2,
  RMA2_QW_PUT = 3,
  RMA2_NOTIFICATION_PUT = 5,
  RMA2_IMMEDIATE_PUT = 6,
  RMA2_PUTS = 7, /* to match: any put but a notification put */
  RMA2_GET_BT_RSP = 10,
  RMA2_GET_QW_RSP = 11,
  RMA2_LOCK_REQ = 12,
  RMA2_LOCK_RSP = 13,
  RMA2_GETS = 14, /* to match: any get */
  RMA2_ANY = 15   /* to match */
} RMA2_Command;

typedef enum {
  RMA2_CMD_DEFAULT = 0, /* the only one supported */
  RMA2_CMD_MC = 1,
  RMA2_CMD_NTR = 2,
  RMA2_CMD_ERA = 4,
  RMA2_CMD_EWA = 8
} RMA2_Command_Modifier;

typedef enum {
  RMA2_NOTI_RRA = 1,
  RMA2_NOTI_IRQ = 2,
  RMA2_NOTI_TE = 4, /* addresses are NLAs: always set */
  RMA2_NOTI_EWA = 8,
  RMA2_NOTI_NTR = 16,
  RMA2_NOTI_ERA = 32
} RMA2_Notification_Modifier;

/* Where an operation failed. */
typedef enum { RMA2_ERROR_REQ = 1, RMA2_ERROR_RESP = 2, RMA2_ERROR_CMPL = 4 } RMA2_Notification_Error;

/* word0: the local NLA; the value of a notification put; of a lock {value 63:32, result 31:24, number 23:0}.
 * word1: size - 1 (22:0), of a notification put its class (7:0); vpid (30:23), nodeid (47:32), type (50:48),
 * command (54:51), mode (60:55), error (63:61). An empty place has word1 = 0. */
typedef struct {
  struct {
    uint64_t value;
  } word0;
  struct {
    uint64_t value;
  } word1;
} RMA2_Notification;

/* value[0]: (size - 1) << 40 | modifier << 35 | notifications << 32 | nodeid << 16 | vpid << 8 | command << 2
 * | 3. value[1], value[2]: read and write address; immediate put: address and value; notification put: value
 * (class at 47:40 of value[0]); lock: compare << 32 | number, add << 32 (target at 40 of value[0]). */
typedef struct {
  RMA2_Handle handle;
  uint64_t value[3];
} RMA2_Descriptor;

#define RMA2_CLASS_ANY 0xffU
#define RMA2_NODEID_ANY 0xffffU
#define RMA2_VPID_ANY 0xffffU
#define RMA2_LOCK_ANY 0xffffffffU
#define RMA2_ANY_NLA UINT64_C(0xffffffffffffffff)
#define RMA2_DEFAULT_FLAG 0
#define RMA2_BLOCK_FLAG 1
#define RMA2_MATCH_LAST_NLA_FLAG 2

RMA2_PUBLIC RMA2_ERROR rma2_open(RMA2_Port* port);
/* Unregisters the port's memory, and drops its notifications. */
RMA2_PUBLIC RMA2_ERROR rma2_close(RMA2_Port port);
RMA2_PUBLIC RMA2_ERROR rma2_connect(RMA2_Port port, RMA2_Nodeid nodeid, RMA2_VPID vpid,
                                    RMA2_Connection_Options options, RMA2_Handle* handle);
RMA2_PUBLIC RMA2_ERROR rma2_disconnect(RMA2_Port port, RMA2_Handle handle);
/* The node and process of an open port; otherwise RMA2_NODEID_ANY and RMA2_VPID_ANY. */
RMA2_PUBLIC RMA2_Nodeid rma2_get_nodeid(RMA2_Port port);
RMA2_PUBLIC RMA2_VPID rma2_get_vpid(RMA2_Port port);

/* Memory stays registered exactly as given; it is not rounded to pages. */
RMA2_PUBLIC RMA2_ERROR rma2_register(RMA2_Port port, void* address, size_t size, RMA2_Region** region);
RMA2_PUBLIC RMA2_ERROR rma2_unregister(RMA2_Port port, RMA2_Region* region);
RMA2_PUBLIC RMA2_ERROR rma2_get_nla(RMA2_Region* region, size_t offset, RMA2_NLA* nla);

/* Sizes are 1 to 2^23 bytes. The source of a put must not change before it has been read: requester
 * notification. dest_address is at the remote process, of a get its source. */
RMA2_PUBLIC RMA2_ERROR rma2_post_put_bt(RMA2_Port port, RMA2_Handle handle, RMA2_Region* src_region,
                                        uint32_t src_offset, uint32_t size, RMA2_NLA dest_address,
                                        RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier);
RMA2_PUBLIC RMA2_ERROR rma2_post_put_qw(RMA2_Port port, RMA2_Handle handle, RMA2_Region* src_region,
                                        uint32_t src_offset, uint32_t size, RMA2_NLA dest_address,
                                        RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier);
RMA2_PUBLIC RMA2_ERROR rma2_post_get_bt(RMA2_Port port, RMA2_Handle handle, RMA2_Region* src_region,
                                        uint32_t src_offset, uint32_t size, RMA2_NLA dest_address,
                                        RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier);
RMA2_PUBLIC RMA2_ERROR rma2_post_get_qw(RMA2_Port port, RMA2_Handle handle, RMA2_Region* src_region,
                                        uint32_t src_offset, uint32_t size, RMA2_NLA dest_address,
                                        RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier);
/* The same with an NLA of this process instead of region and offset. */
RMA2_PUBLIC RMA2_ERROR rma2_post_put_bt_direct(RMA2_Port port, RMA2_Handle handle, RMA2_NLA src,
                                               uint32_t size, RMA2_NLA dest_address,
                                               RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier);
RMA2_PUBLIC RMA2_ERROR rma2_post_put_qw_direct(RMA2_Port port, RMA2_Handle handle, RMA2_NLA src,
                                               uint32_t size, RMA2_NLA dest_address,
                                               RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier);
RMA2_PUBLIC RMA2_ERROR rma2_post_get_bt_direct(RMA2_Port port, RMA2_Handle handle, RMA2_NLA src,
                                               uint32_t size, RMA2_NLA dest_address,
                                               RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier);
RMA2_PUBLIC RMA2_ERROR rma2_post_get_qw_direct(RMA2_Port port, RMA2_Handle handle, RMA2_NLA src,
                                               uint32_t size, RMA2_NLA dest_address,
                                               RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier);
/* Writes the low 1 to 8 bytes of `value`. */
RMA2_PUBLIC RMA2_ERROR rma2_post_immediate_put(RMA2_Port port, RMA2_Handle handle, uint32_t count,
                                               uint64_t value, RMA2_NLA dest_address,
                                               RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier);
/* Moves no memory: value and class are in the notifications. */
RMA2_PUBLIC RMA2_ERROR rma2_post_notification(RMA2_Port port, RMA2_Handle handle, RMA2_Class mclass,
                                              uint64_t value, RMA2_Notification_Spec spec,
                                              RMA2_Command_Modifier modifier);
/* Fetch-compare-and-add on one of the remote process's 16384 locks, of 32 bits and 0 at first: if it is at
 * most cmp_value, adds add_value. The notifications have the value afterwards, and whether it was added to.
 * target: 0, the completer, or 1, the responder; the model makes no difference. */
RMA2_PUBLIC RMA2_ERROR rma2_post_lock(RMA2_Port port, RMA2_Handle handle, uint32_t target,
                                      uint32_t lock_number, int32_t cmp_value, int32_t add_value,
                                      RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier);

/* A descriptor goes to the process that it names, whichever connection it is posted on. */
RMA2_PUBLIC RMA2_ERROR rma2_post_descriptor(RMA2_Port port, RMA2_Handle handle, RMA2_Descriptor* desc);
RMA2_PUBLIC RMA2_ERROR rma2_desc_set_put_get(RMA2_Descriptor* desc, RMA2_Handle handle, RMA2_Command command,
                                             uint32_t count, RMA2_Notification_Spec spec,
                                             RMA2_Command_Modifier modifier, uint64_t read_address,
                                             uint64_t write_address);
RMA2_PUBLIC RMA2_ERROR rma2_desc_set_immediate_put(RMA2_Descriptor* desc, RMA2_Handle handle,
                                                   RMA2_Notification_Spec spec,
                                                   RMA2_Command_Modifier modifier, uint32_t count,
                                                   uint64_t write_address, uint64_t value);
RMA2_PUBLIC RMA2_ERROR rma2_desc_set_noti_put(RMA2_Descriptor* desc, RMA2_Handle handle,
                                              RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier,
                                              RMA2_Class mclass, uint64_t value);
RMA2_PUBLIC RMA2_ERROR rma2_desc_set_lock(RMA2_Descriptor* desc, RMA2_Handle handle,
                                          RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier,
                                          uint8_t type, uint32_t lock_number, uint32_t compare,
                                          uint32_t add_value);

RMA2_PUBLIC RMA2_ERROR rma2_noti_probe(RMA2_Port port, RMA2_Notification** notification);
RMA2_PUBLIC RMA2_ERROR rma2_noti_get_block(RMA2_Port port, RMA2_Notification** notification);
/* flags: RMA2_BLOCK_FLAG waits for a notification, RMA2_MATCH_LAST_NLA_FLAG compares `nla` with the end of
 * the data. RMA2_ERR_NO_MATCH: the oldest one does not match. */
RMA2_PUBLIC RMA2_ERROR rma2_noti_match(RMA2_Port port, RMA2_Command cmd, RMA2_Nodeid nodeid, RMA2_VPID vpid,
                                       RMA2_Notification_Spec type, RMA2_NLA nla, int flags,
                                       RMA2_Notification** notification);
RMA2_PUBLIC RMA2_ERROR rma2_noti_match_block(RMA2_Port port, RMA2_Command cmd, RMA2_Nodeid nodeid,
                                             RMA2_VPID vpid, RMA2_Notification_Spec type, RMA2_NLA nla,
                                             int flags, RMA2_Notification** notification);
RMA2_PUBLIC RMA2_ERROR rma2_noti_noti_match(RMA2_Port port, RMA2_Class mclass, RMA2_Nodeid nodeid,
                                            RMA2_VPID vpid, RMA2_Notification** notification);
RMA2_PUBLIC RMA2_ERROR rma2_noti_noti_match_block(RMA2_Port port, RMA2_Class mclass, RMA2_Nodeid nodeid,
                                                  RMA2_VPID vpid, RMA2_Notification** notification);
/* The oldest notification of this responder. */
RMA2_PUBLIC RMA2_ERROR rma2_noti_lock_match(RMA2_Port port, uint32_t lockid, RMA2_Nodeid nodeid,
                                            RMA2_VPID vpid, RMA2_Notification** notification);
RMA2_PUBLIC RMA2_ERROR rma2_noti_lock_match_block(RMA2_Port port, uint32_t lockid, RMA2_Nodeid nodeid,
                                                  RMA2_VPID vpid, RMA2_Notification** notification);
/* Copies; does not free. */
RMA2_PUBLIC RMA2_ERROR rma2_noti_dup(RMA2_Notification* input, RMA2_Notification* output);
/* Frees the oldest one only. */
RMA2_PUBLIC RMA2_ERROR rma2_noti_free(RMA2_Port port, RMA2_Notification* notification);

RMA2_PUBLIC RMA2_Command rma2_noti_get_cmd(RMA2_Notification* noti);
RMA2_PUBLIC RMA2_Notification_Spec rma2_noti_get_notification_type(RMA2_Notification* noti);
RMA2_PUBLIC RMA2_Notification_Modifier rma2_noti_get_mode(RMA2_Notification* noti);
RMA2_PUBLIC uint8_t rma2_noti_get_error(RMA2_Notification* noti);
RMA2_PUBLIC RMA2_Nodeid rma2_noti_get_remote_nodeid(RMA2_Notification* noti);
RMA2_PUBLIC RMA2_VPID rma2_noti_get_remote_vpid(RMA2_Notification* noti);
RMA2_PUBLIC uint64_t rma2_noti_get_local_address(RMA2_Notification* noti);
RMA2_PUBLIC uint32_t rma2_noti_get_size(RMA2_Notification* noti);
RMA2_PUBLIC uint32_t rma2_noti_get_lock_value(RMA2_Notification* noti);
RMA2_PUBLIC uint32_t rma2_noti_get_lock_number(RMA2_Notification* noti);
RMA2_PUBLIC uint8_t rma2_noti_get_lock_result(RMA2_Notification* noti);
RMA2_PUBLIC uint64_t rma2_noti_get_notiput_payload(RMA2_Notification* noti);
RMA2_PUBLIC uint8_t rma2_noti_get_notiput_class(RMA2_Notification* noti);
/* One line of text. */
RMA2_PUBLIC void rma2_noti_fdump(RMA2_Notification* noti, FILE* file);
RMA2_PUBLIC void rma2_noti_dump(RMA2_Notification* noti);

RMA2_PUBLIC const char* rma2_strerror(RMA2_ERROR error);
RMA2_PUBLIC void rma2_serror(RMA2_ERROR error, char* buf, int buflen);
RMA2_PUBLIC void rma2_perror(RMA2_ERROR error, const char* header);

#undef RMA2_PUBLIC

#ifdef __cplusplus
}
#endif

#endif
