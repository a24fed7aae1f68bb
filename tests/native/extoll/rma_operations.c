/* rma_operations: every operation of RMA between nodes 0 and 1 (or within node 0), with every notification
 * bit. */
#include <string.h>

#include "rma_common.h"

enum { bytes = 4096 };

static void check_noti(RMA2_Notification noti, RMA2_NLA address, uint32_t size, int remote) {
  EXPECT(rma2_noti_get_local_address(&noti) == address);
  EXPECT(rma2_noti_get_size(&noti) == size);
  EXPECT(rma2_noti_get_remote_nodeid(&noti) == remote);
  EXPECT(rma2_noti_get_mode(&noti) == RMA2_NOTI_TE);
}

int main(void) {
  RMA2_Port port = open_port();
  const RMA2_Nodeid me = rma2_get_nodeid(port);
  const int other = 1 - me;
  RMA2_Handle peer = connect_to(port, (RMA2_Nodeid)other);
  unsigned char* memory = aligned_alloc(8, bytes);
  for (int i = 0; i < bytes; ++i) memory[i] = (unsigned char)(i * 7 + me);
  RMA2_Region* region;
  const RMA2_NLA mine = register_at(port, memory, bytes, &region);
  const RMA2_NLA theirs = exchange(port, peer, mine);

  /* Node 0 acts, node 1 is told. */
  if (me == 0) {
    check(
        rma2_post_put_bt(port, peer, region, 3, 501, theirs + 1201, RMA2_ALL_NOTIFICATIONS, RMA2_CMD_DEFAULT),
        "put");
    check_noti(take(port, RMA2_REQUESTER_NOTIFICATION, RMA2_BT_PUT), mine + 3, 501, 1);
    check(rma2_post_get_qw(port, peer, region, 2048, 1024, theirs + 8, RMA2_ALL_NOTIFICATIONS,
                           RMA2_CMD_DEFAULT),
          "get");
    check_noti(take(port, RMA2_REQUESTER_NOTIFICATION, RMA2_QW_GET), mine + 2048, 1024, 1);
    check_noti(take(port, RMA2_COMPLETER_NOTIFICATION, RMA2_GET_QW_RSP), mine + 2048, 1024, 1);
    for (int i = 0; i < 1024; ++i) EXPECT(memory[2048 + i] == (unsigned char)((8 + i) * 7 + 1));
    check(rma2_post_get_bt_direct(port, peer, mine + 5, 1, theirs + 3000, RMA2_COMPLETER_NOTIFICATION,
                                  RMA2_CMD_DEFAULT),
          "get");
    check_noti(take(port, RMA2_COMPLETER_NOTIFICATION, RMA2_GET_BT_RSP), mine + 5, 1, 1);
    EXPECT(memory[5] == (unsigned char)(3000 * 7 + 1));
    check(rma2_post_immediate_put(port, peer, 3, 0xffaabbccULL, theirs + 17, RMA2_REQCOMPL_NOTIFICATION,
                                  RMA2_CMD_DEFAULT),
          "put");
    take(port, RMA2_REQUESTER_NOTIFICATION, RMA2_IMMEDIATE_PUT);
    /* Descriptors of the published format. */
    RMA2_Descriptor desc;
    check(rma2_desc_set_put_get(&desc, peer, RMA2_QW_PUT, 64, RMA2_COMPLETER_NOTIFICATION, RMA2_CMD_DEFAULT,
                                mine + 64, theirs + 128),
          "desc");
    EXPECT(desc.value[0] == ((uint64_t)63 << 40 | (uint64_t)4 << 32 | (uint64_t)1 << 16 | 3 << 2 | 3));
    EXPECT(desc.value[1] == mine + 64 && desc.value[2] == theirs + 128);
    check(rma2_post_descriptor(port, peer, &desc), "rma2_post_descriptor");
  } else {
    check_noti(take(port, RMA2_COMPLETER_NOTIFICATION, RMA2_BT_PUT), mine + 1201, 501, 0);
    for (int i = 0; i < 501; ++i) EXPECT(memory[1201 + i] == (unsigned char)((i + 3) * 7));
    EXPECT(memory[1200] == (unsigned char)(1200 * 7 + 1) && memory[1702] == (unsigned char)(1702 * 7 + 1));
    check_noti(take(port, RMA2_RESPONDER_NOTIFICATION, RMA2_QW_GET), mine + 8, 1024, 0);
    check_noti(take(port, RMA2_COMPLETER_NOTIFICATION, RMA2_IMMEDIATE_PUT), mine + 17, 3, 0);
    EXPECT(memory[17] == 0xcc && memory[18] == 0xbb && memory[19] == 0xaa);
    EXPECT(memory[20] == (unsigned char)(20 * 7 + 1));
    check_noti(take(port, RMA2_COMPLETER_NOTIFICATION, RMA2_QW_PUT), mine + 128, 64, 0);
  }

  /* Locks: 28 is passed in steps of 7, then the lock holds at 35; both nodes count on node 1's lock 9. */
  if (me == 0) {
    for (int step = 1; step <= 6; ++step) {
      check(rma2_post_lock(port, peer, 0, 7, 28, 7, RMA2_ALL_NOTIFICATIONS, RMA2_CMD_DEFAULT),
            "rma2_post_lock");
      RMA2_Notification noti = take(port, RMA2_REQUESTER_NOTIFICATION, RMA2_LOCK_REQ);
      EXPECT(rma2_noti_get_lock_value(&noti) == 28 && rma2_noti_get_lock_result(&noti) == 0);
      noti = take(port, RMA2_COMPLETER_NOTIFICATION, RMA2_LOCK_RSP);
      EXPECT(rma2_noti_get_lock_number(&noti) == 7);
      EXPECT(rma2_noti_get_lock_value(&noti) == (uint32_t)(step < 6 ? 7 * step : 35));
      EXPECT(rma2_noti_get_lock_result(&noti) == (step < 6));
    }
  } else {
    for (int step = 1; step <= 6; ++step) {
      RMA2_Notification* noti;
      check(rma2_noti_lock_match_block(port, 7, 0, RMA2_VPID_ANY, &noti), "rma2_noti_lock_match_block");
      EXPECT(rma2_noti_get_lock_value(noti) == (uint32_t)(step < 6 ? 7 * step : 35));
      EXPECT(rma2_noti_get_lock_result(noti) == (step < 6));
      check(rma2_noti_free(port, noti), "rma2_noti_free");
    }
  }
  exchange(port, peer, 0);
  RMA2_Handle counter = connect_to(port, 1);
  uint32_t last = 0;
  uint64_t their_last = 0; /* told when the peer has finished, perhaps in the middle */
  for (int left = 50; left > 0;) {
    check(rma2_post_lock(port, counter, 0, 9, 0x7fffffff, 1, RMA2_COMPLETER_NOTIFICATION, RMA2_CMD_DEFAULT),
          "lock");
    RMA2_Notification* noti;
    check(rma2_noti_get_block(port, &noti), "rma2_noti_get_block");
    if (rma2_noti_get_cmd(noti) == RMA2_NOTIFICATION_PUT) {
      their_last = rma2_noti_get_notiput_payload(noti);
      check(rma2_noti_free(port, noti), "rma2_noti_free");
      check(rma2_noti_get_block(port, &noti), "rma2_noti_get_block");
    }
    EXPECT(rma2_noti_get_cmd(noti) == RMA2_LOCK_RSP && rma2_noti_get_lock_result(noti) == 1);
    EXPECT(rma2_noti_get_lock_value(noti) > last);
    last = rma2_noti_get_lock_value(noti);
    check(rma2_noti_free(port, noti), "rma2_noti_free");
    --left;
  }
  check(rma2_post_notification(port, peer, 7, last, RMA2_COMPLETER_NOTIFICATION, RMA2_CMD_DEFAULT), "post");
  if (their_last == 0) {
    RMA2_Notification noti = take(port, RMA2_COMPLETER_NOTIFICATION, RMA2_NOTIFICATION_PUT);
    their_last = rma2_noti_get_notiput_payload(&noti);
  }
  EXPECT((last > their_last ? last : their_last) == 100);
  check(rma2_close(port), "rma2_close");
  puts("passed");
  return 0;
}
