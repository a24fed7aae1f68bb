/* What the RMA programs of the tests share: an open port, and addresses exchanged by notification puts. */
#ifndef RMA_COMMON_H
#define RMA_COMMON_H

#include <rma2.h>
#include <stdio.h>
#include <stdlib.h>

static inline void check(RMA2_ERROR error, const char* what) {
  if (error == RMA2_SUCCESS) return;
  rma2_perror(error, what);
  exit(1);
}

static inline void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "not true: %s\n", what);
  exit(1);
}
#define EXPECT(condition) expect((condition) != 0, #condition)

static inline RMA2_Port open_port(void) {
  RMA2_Port port;
  check(rma2_open(&port), "rma2_open");
  return port;
}

static inline RMA2_Handle connect_to(RMA2_Port port, RMA2_Nodeid node) {
  RMA2_Handle handle;
  check(rma2_connect(port, node, 0, RMA2_CONN_DEFAULT, &handle), "rma2_connect");
  return handle;
}

static inline RMA2_NLA register_at(RMA2_Port port, void* memory, size_t bytes, RMA2_Region** region) {
  RMA2_NLA nla;
  check(rma2_register(port, memory, bytes, region), "rma2_register");
  check(rma2_get_nla(*region, 0, &nla), "rma2_get_nla");
  return nla;
}

/* Takes the oldest notification, which must be of this type and command and without error. */
static inline RMA2_Notification take(RMA2_Port port, RMA2_Notification_Spec type, RMA2_Command command) {
  RMA2_Notification* notification;
  RMA2_Notification copy;
  check(rma2_noti_get_block(port, &notification), "rma2_noti_get_block");
  if (rma2_noti_get_notification_type(notification) != type || rma2_noti_get_cmd(notification) != command ||
      rma2_noti_get_error(notification) != 0) {
    rma2_noti_fdump(notification, stderr);
    exit(1);
  }
  check(rma2_noti_dup(notification, &copy), "rma2_noti_dup");
  check(rma2_noti_free(port, notification), "rma2_noti_free");
  return copy;
}

/* Both sides call it: sends a value by a notification put, and takes the peer's. */
static inline uint64_t exchange(RMA2_Port port, RMA2_Handle peer, uint64_t value) {
  check(rma2_post_notification(port, peer, 7, value, RMA2_COMPLETER_NOTIFICATION, RMA2_CMD_DEFAULT),
        "rma2_post_notification");
  RMA2_Notification noti = take(port, RMA2_COMPLETER_NOTIFICATION, RMA2_NOTIFICATION_PUT);
  EXPECT(rma2_noti_get_notiput_class(&noti) == 7);
  return rma2_noti_get_notiput_payload(&noti);
}

#endif
