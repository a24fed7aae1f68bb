/* errors: every misuse has its own code, with text. Two processes on node 0 or on two nodes; the second one
 * only takes part. Without a card or without `apenet run`: errors no-card, errors no-run. */
#include <string.h>
#include <velo2.h>

#include "rma_common.h"

static int failures = 0;

static void velo(velo2_ret_t got, velo2_ret_t wanted, const char* what) {
  if (got == wanted && velo2_strerror(got)[0] != '\0') return;
  fprintf(stderr, "%s: '%s' instead of '%s'\n", what, velo2_strerror(got), velo2_strerror(wanted));
  ++failures;
}

static void rma(RMA2_ERROR got, RMA2_ERROR wanted, const char* what) {
  if (got == wanted && rma2_strerror(got)[0] != '\0') return;
  fprintf(stderr, "%s: '%s' instead of '%s'\n", what, rma2_strerror(got), rma2_strerror(wanted));
  ++failures;
}
#define VELO(call, wanted) velo(call, wanted, #call)
#define RMA(call, wanted) rma(call, wanted, #call)

static void velo_errors(velo2_nodeid_t peer_node) {
  velo2_port_t port;
  velo2_port_t second;
  velo2_connection_t connection;
  char buffer[128] = {0};
  uint32_t length;
  uint32_t source;
  uint8_t tag;
  uint8_t mtt;
  memset(&port, 0x5a, sizeof port);
  VELO(velo2_close(&port), VELO2_RET_INVALID_MBOX);
  VELO(velo2_open(NULL), VELO2_RET_ERROR);
  VELO(velo2_open(&port), VELO2_RET_SUCCESS);
  VELO(velo2_open(&second), VELO2_RET_INVALID_MBOX);
  VELO(velo2_connect(&port, &connection, 999, 0), VELO2_RET_INVALID_NODE);
  VELO(velo2_connect(&port, &connection, peer_node, 4), VELO2_RET_INVALID_MBOX);
  VELO(velo2_send(&connection, buffer, 8, 0, 0), VELO2_RET_INVALID_MBOX);
  VELO(velo2_connect(&port, &connection, peer_node, 0), VELO2_RET_SUCCESS);
  VELO(velo2_send(&connection, buffer, 57, 0, 0), VELO2_RET_INV_MSG);
  VELO(velo2_send(&connection, buffer, UINT32_MAX, 0, 0), VELO2_RET_INV_MSG);
  VELO(velo2_send(&connection, buffer, 8, 0, 4), VELO2_RET_INV_MTT);
  VELO(velo2_send(&connection, NULL, 8, 0, 0), VELO2_RET_ERROR);
  VELO(velo2_probe_recv(&port, buffer, 64, &length, &source, &tag, &mtt), VELO2_RET_NO_MSG);
  VELO(velo2_recv(&port, buffer, 64, &length, &source, &tag, 4), VELO2_RET_INV_MTT);
  VELO(velo2_recv(&port, buffer, 64, NULL, &source, &tag, 0), VELO2_RET_ERROR);
  /* To itself: one message for several calls, which leave it in the mailbox. */
  velo2_connection_t self;
  VELO(velo2_connect(&port, &self, velo2_get_nodeid(&port), velo2_get_vpid(&port)), VELO2_RET_SUCCESS);
  VELO(velo2_send(&self, "sixteen letters", 16, 3, 1), VELO2_RET_SUCCESS);
  VELO(velo2_recv(&port, buffer, 64, &length, &source, &tag, 0), VELO2_RET_NO_MATCH);
  VELO(velo2_recv(&port, buffer, 15, &length, &source, &tag, 1), VELO2_RET_INV_MSG);
  VELO(velo2_probe_recv(&port, buffer, 64, &length, &source, &tag, &mtt), VELO2_RET_SUCCESS);
  if (length != 16 || tag != 3 || mtt != 1 || strcmp(buffer, "sixteen letters") != 0) ++failures;
  VELO(velo2_disconnect(&connection), VELO2_RET_SUCCESS);
  VELO(velo2_disconnect(&connection), VELO2_RET_INVALID_MBOX);
  VELO(velo2_send(&connection, buffer, 8, 0, 0), VELO2_RET_INVALID_MBOX);
  second = port;
  VELO(velo2_close(&port), VELO2_RET_SUCCESS);
  VELO(velo2_close(&port), VELO2_RET_INVALID_MBOX);
  VELO(velo2_open(&port), VELO2_RET_SUCCESS);
  VELO(velo2_send(&self, buffer, 8, 0, 0), VELO2_RET_INVALID_MBOX);
  VELO(velo2_recv(&second, buffer, 64, &length, &source, &tag, 0), VELO2_RET_INVALID_MBOX);
  VELO(velo2_close(&port), VELO2_RET_SUCCESS);
  if (velo2_get_nodeid(&port) != 0xffff || velo2_get_vpid(&port) != 0xff) ++failures;
}

static void refused(RMA2_Port port, RMA2_Command command, uint8_t error) {
  RMA2_Notification* noti;
  check(rma2_noti_get_block(port, &noti), "rma2_noti_get_block");
  if (rma2_noti_get_error(noti) != error || rma2_noti_get_cmd(noti) != command) {
    rma2_noti_fdump(noti, stderr);
    ++failures;
  }
  check(rma2_noti_free(port, noti), "rma2_noti_free");
}

static void rma_errors(RMA2_Port port, RMA2_Handle peer, RMA2_NLA theirs, size_t their_bytes) {
  RMA2_Port second;
  RMA2_Handle handle;
  RMA2_Notification* noti;
  RMA2_NLA nla;
  _Alignas(8) static unsigned char memory[64];
  RMA2_Region* region;
  RMA(rma2_open(&second), RMA2_ERR_PORTS_USED);
  RMA(rma2_connect(port, 0, 9, RMA2_CONN_DEFAULT, &handle), RMA2_ERR_NO_ROUTE);
  RMA(rma2_connect(port, 999, 0, RMA2_CONN_DEFAULT, &handle), RMA2_ERR_NO_ROUTE);
  RMA(rma2_connect(port, 0, 0, RMA2_CONN_RRA, &handle), RMA2_ERR_NOT_YET);
  RMA(rma2_register(port, NULL, 8, &region), RMA2_ERR_ERROR);
  RMA(rma2_register(port, memory, 0, &region), RMA2_ERR_NO_MEM);
  RMA(rma2_register(port, memory, sizeof memory, &region), RMA2_SUCCESS);
  RMA(rma2_get_nla(region, 64, &nla), RMA2_ERR_INV_VALUE);
  RMA(rma2_get_nla(region, 8, &nla), RMA2_SUCCESS);
  const RMA2_Notification_Spec none = RMA2_NO_NOTIFICATION;
  const RMA2_Command_Modifier plain = RMA2_CMD_DEFAULT;
  RMA(rma2_post_put_bt(port, NULL, region, 0, 8, theirs, none, plain), RMA2_ERR_INV_HANDLE);
  RMA(rma2_post_put_bt(port, peer, NULL, 0, 8, theirs, none, plain), RMA2_ERR_NO_TABLE);
  RMA(rma2_post_put_bt(port, peer, region, 60, 8, theirs, none, plain), RMA2_ERR_PART);
  RMA(rma2_post_put_bt(port, peer, region, 0, 0, theirs, none, plain), RMA2_ERR_INV_VALUE);
  RMA(rma2_post_put_bt(port, peer, region, 0, (1 << 23) + 1, theirs, none, plain), RMA2_ERR_INV_VALUE);
  RMA(rma2_post_put_qw(port, peer, region, 4, 8, theirs, none, plain), RMA2_ERR_WRONG_ARG);
  RMA(rma2_post_put_qw(port, peer, region, 0, 12, theirs, none, plain), RMA2_ERR_WRONG_ARG);
  RMA(rma2_post_get_qw(port, peer, region, 0, 8, theirs + 4, none, plain), RMA2_ERR_WRONG_ARG);
  RMA(rma2_post_put_bt_direct(port, peer, 1, 8, theirs, none, plain), RMA2_ERR_NO_TABLE);
  RMA(rma2_post_put_bt(port, peer, region, 0, 8, theirs, none, RMA2_CMD_MC), RMA2_ERR_NOT_YET);
  RMA(rma2_post_immediate_put(port, peer, 9, 0, theirs, none, plain), RMA2_ERR_INV_VALUE);
  RMA(rma2_post_lock(port, peer, 0, 16384, 0, 1, none, plain), RMA2_ERR_INV_VALUE);
  RMA2_Descriptor desc = {peer, {(uint64_t)RMA2_GET_BT_RSP << 2 | 3, 0, 0}};
  RMA(rma2_post_descriptor(port, peer, &desc), RMA2_ERR_WRONG_CMD);

  /* Refused at the target, and told by the notification's error bits. */
  RMA(rma2_post_put_bt(port, peer, region, 0, 8, theirs + their_bytes - 7, none, plain), RMA2_SUCCESS);
  refused(port, RMA2_BT_PUT, RMA2_ERROR_CMPL);
  RMA(rma2_post_put_bt(port, peer, region, 0, 8, (RMA2_NLA)77 << 40, none, plain), RMA2_SUCCESS);
  refused(port, RMA2_BT_PUT, RMA2_ERROR_CMPL);
  RMA(rma2_post_put_bt(port, peer, region, 0, 8, 0, none, plain), RMA2_SUCCESS);
  refused(port, RMA2_BT_PUT, RMA2_ERROR_CMPL);
  RMA(rma2_post_immediate_put(port, peer, 8, 1, theirs - 1, none, plain), RMA2_SUCCESS);
  refused(port, RMA2_IMMEDIATE_PUT, RMA2_ERROR_CMPL);
  memset(memory, 0x11, sizeof memory);
  RMA(rma2_post_get_bt(port, peer, region, 0, 8, theirs + their_bytes - 7, none, plain), RMA2_SUCCESS);
  refused(port, RMA2_GET_BT_RSP, RMA2_ERROR_RESP);
  for (int i = 0; i < 8; ++i) EXPECT(memory[i] == 0x11);

  RMA(rma2_noti_probe(port, &noti), RMA2_NO_NOTI);
  RMA(rma2_post_put_bt(port, peer, region, 0, 8, theirs, RMA2_REQUESTER_NOTIFICATION, plain), RMA2_SUCCESS);
  RMA(rma2_post_put_bt(port, peer, region, 8, 8, theirs, RMA2_REQUESTER_NOTIFICATION, plain), RMA2_SUCCESS);
  RMA(rma2_noti_match(port, RMA2_GETS, RMA2_NODEID_ANY, RMA2_VPID_ANY, RMA2_ALL_NOTIFICATIONS, RMA2_ANY_NLA,
                      RMA2_BLOCK_FLAG, &noti),
      RMA2_ERR_NO_MATCH);
  RMA(rma2_noti_match(port, RMA2_PUTS, RMA2_NODEID_ANY, 0, RMA2_REQUESTER_NOTIFICATION, nla,
                      RMA2_BLOCK_FLAG | RMA2_MATCH_LAST_NLA_FLAG, &noti),
      RMA2_SUCCESS);
  RMA(rma2_noti_free(port, noti + 1), RMA2_ERR_INV_VALUE);
  RMA(rma2_noti_free(port, noti), RMA2_SUCCESS);
  RMA(rma2_noti_free(port, noti), RMA2_ERR_INV_VALUE);
  RMA(rma2_noti_match_block(port, RMA2_BT_PUT, RMA2_NODEID_ANY, 0, RMA2_REQUESTER_NOTIFICATION, nla, 0,
                            &noti),
      RMA2_SUCCESS);
  RMA(rma2_noti_free(port, noti), RMA2_SUCCESS);
  RMA(rma2_unregister(port, region), RMA2_SUCCESS);
  RMA(rma2_unregister(port, region), RMA2_ERR_NO_TABLE);
  RMA(rma2_get_nla(region, 0, &nla), RMA2_ERR_NO_TABLE);
  RMA(rma2_post_put_bt(port, peer, region, 0, 8, theirs, none, plain), RMA2_ERR_NO_TABLE);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  velo2_port_t velo_port;
  RMA2_Port port;
  RMA2_Region* region;
  if (strcmp(mode, "no-card") == 0 || strcmp(mode, "no-run") == 0) {
    const int has_run = strcmp(mode, "no-card") == 0;
    VELO(velo2_open(&velo_port), has_run ? VELO2_RET_ERR_FDOPEN : VELO2_RET_ERR_MMAP);
    RMA(rma2_open(&port), has_run ? RMA2_ERR_NO_DEVICE : RMA2_ERR_FD);
    RMA(rma2_register(port, &port, sizeof port, &region), RMA2_ERR_INV_PORT);
    printf("%s\n%s\n", velo2_strerror(velo2_open(&velo_port)), rma2_strerror(rma2_open(&port)));
    return failures;
  }
  RMA(rma2_close((RMA2_Port)&port), RMA2_ERR_INV_PORT);
  port = open_port();
  const int is_first = rma2_get_nodeid(port) == 0 && rma2_get_vpid(port) == 0;
  const RMA2_Nodeid other = is_first ? 1 : 0;
  RMA2_Handle peer = connect_to(port, other);
  static uint64_t word[3] = {~0ULL, 0, ~0ULL}; /* only the middle is registered */
  const RMA2_NLA theirs = exchange(port, peer, register_at(port, &word[1], 8, &region));
  if (is_first) {
    velo_errors(other);
    rma_errors(port, peer, theirs, 8);
  }
  if (!is_first) take(port, RMA2_COMPLETER_NOTIFICATION, RMA2_NOTIFICATION_PUT); /* the first has finished */
  check(rma2_post_notification(port, peer, 7, 0, RMA2_COMPLETER_NOTIFICATION, RMA2_CMD_DEFAULT), "post");
  if (is_first) take(port, RMA2_COMPLETER_NOTIFICATION, RMA2_NOTIFICATION_PUT);
  if (word[0] != ~0ULL || word[2] != ~0ULL) ++failures;
  RMA(rma2_disconnect(port, peer), RMA2_SUCCESS);
  RMA(rma2_disconnect(port, peer), RMA2_ERR_INV_HANDLE);
  RMA(rma2_close(port), RMA2_SUCCESS);
  RMA(rma2_close(port), RMA2_ERR_INV_PORT);
  RMA2_Notification* noti;
  RMA(rma2_noti_get_block(port, &noti), RMA2_ERR_INV_PORT);
  if (failures == 0) puts("passed");
  return failures;
}
