/* velo2.h: VELO, EXTOLL's engine for small messages, by the names of its user library.
 *
 * One velo2_send() is one packet: up to 56 bytes on the card of 2012, up to 120 where the machine's
 * description says so (card.velo_payload_bytes). It lies in a slot of the target's mailbox until the target
 * calls velo2_recv() or velo2_probe_recv(). Messages from one process to another keep their order.
 *
 * A process has one port. Link with libapenet-extoll and start the program by `apenet run` on a machine with
 * an EXTOLL card. docs/apis/extoll.md says what each call costs and what is not supported. */
#ifndef APENET_VELO2_H
#define APENET_VELO2_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VELO2_PUBLIC __attribute__((visibility("default")))

typedef enum velo2_ret {
  VELO2_RET_SUCCESS = 0,
  VELO2_RET_ERROR,        /* an argument is NULL, or the process has left the simulation */
  VELO2_RET_NO_MSG,       /* the mailbox is empty */
  VELO2_RET_NO_MATCH,     /* the oldest message has another message type */
  VELO2_RET_ERR_FDOPEN,   /* the machine has no EXTOLL card */
  VELO2_RET_ERR_MMAP,     /* the program was not started by `apenet run` */
  VELO2_RET_INVALID_MBOX, /* a port or connection that is not open, a vpid without process, a second port */
  VELO2_RET_INVALID_NODE, /* no process of the program is on this node */
  VELO2_RET_TRY_AGAIN,    /* no space to send, and the own mailbox is full: receive, and send again */
  VELO2_RET_INV_MSG,      /* longer than a packet, or than the receiver's buffer */
  VELO2_RET_INV_MTT       /* a message type above 3 */
} velo2_ret_t;

typedef uint16_t velo2_nodeid_t;
typedef uint8_t velo2_vpid_t; /* the process on its node, from 0 */

/* Fields are the library's own. */
typedef struct velo2_port {
  uint64_t id;
} velo2_port_t;
typedef struct velo2_connection {
  uint64_t port_id;
  uint32_t target;
} velo2_connection_t;

/* The status word, last in a slot. */
#define VELO2_STATUS_NODEID(word) ((word)&0xffffU)
#define VELO2_STATUS_VPID(word) ((word) >> 16 & 0xffU)
#define VELO2_STATUS_SOURCEID(word) ((word)&0xffffffU)
#define VELO2_STATUS_MTT(word) ((word) >> 32 & 0x3U)
#define VELO2_STATUS_EOM(word) ((word) >> 36 & 0x1U)
#define VELO2_STATUS_ERR(word) ((word) >> 37 & 0x1U)
#define VELO2_STATUS_TAG(word) ((word) >> 40 & 0xffU)
#define VELO2_STATUS_LENGTH(word) ((word) >> 48 & 0x7fU)

VELO2_PUBLIC velo2_ret_t velo2_open(velo2_port_t* port);
/* Drops the messages in the mailbox. */
VELO2_PUBLIC velo2_ret_t velo2_close(velo2_port_t* port);

VELO2_PUBLIC velo2_ret_t velo2_connect(velo2_port_t* port, velo2_connection_t* connection,
                                       velo2_nodeid_t nodeid, velo2_vpid_t vpid);
VELO2_PUBLIC velo2_ret_t velo2_disconnect(velo2_connection_t* connection);

/* The node and process of an open port; otherwise 0xffff and 0xff. */
VELO2_PUBLIC velo2_nodeid_t velo2_get_nodeid(const velo2_port_t* port);
VELO2_PUBLIC velo2_vpid_t velo2_get_vpid(const velo2_port_t* port);

/* The buffer is free when the call returns. mtt: message type, 0 to 3. Waits while the card holds the process
 * back because the target's mailbox, or the way to it, is full; but VELO2_RET_TRY_AGAIN if the process's own
 * mailbox is full then, because its sender may wait for this process to receive. */
VELO2_PUBLIC velo2_ret_t velo2_send(velo2_connection_t* connection, const void* buffer, uint32_t length,
                                    uint8_t tag, uint8_t mtt);

/* Waits for a message and takes it. srcid: the sender's nodeid + (vpid << 16). A message that is not taken
 * (VELO2_RET_NO_MATCH, VELO2_RET_INV_MSG) stays the oldest one. */
VELO2_PUBLIC velo2_ret_t velo2_recv(velo2_port_t* port, void* buffer, uint32_t max_length, uint32_t* length,
                                    uint32_t* srcid, uint8_t* tag, uint8_t mtt);
/* As velo2_recv(), of any message type, but does not wait: VELO2_RET_NO_MSG. */
VELO2_PUBLIC velo2_ret_t velo2_probe_recv(velo2_port_t* port, void* buffer, uint32_t max_length,
                                          uint32_t* length, uint32_t* srcid, uint8_t* tag, uint8_t* mtt);

VELO2_PUBLIC const char* velo2_strerror(velo2_ret_t error);

#undef VELO2_PUBLIC

#ifdef __cplusplus
}
#endif

#endif
