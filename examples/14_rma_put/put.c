// A put with notification: process 0 writes into the memory of process 1, which a notification then wakes.
#include <rma2.h>
#include <stdio.h>
#include <stdlib.h>

enum { numbers = 4096 };

static void check(RMA2_ERROR error, const char* call) {
  if (error == RMA2_SUCCESS) return;
  rma2_perror(error, call);
  exit(1);
}

// Waits for the next notification and frees it.
static RMA2_Notification take(RMA2_Port port) {
  RMA2_Notification* oldest;
  RMA2_Notification copy;
  check(rma2_noti_get_block(port, &oldest), "rma2_noti_get_block");
  check(rma2_noti_dup(oldest, &copy), "rma2_noti_dup");
  check(rma2_noti_free(port, oldest), "rma2_noti_free");
  return copy;
}

int main(void) {
  RMA2_Port port;
  RMA2_Handle other;
  RMA2_Region* region;
  RMA2_NLA address;
  static double data[numbers];
  check(rma2_open(&port), "rma2_open");
  const int me = rma2_get_nodeid(port);
  check(rma2_connect(port, (RMA2_Nodeid)(1 - me), 0, RMA2_CONN_DEFAULT, &other), "rma2_connect");
  check(rma2_register(port, data, sizeof data, &region), "rma2_register");
  check(rma2_get_nla(region, 0, &address), "rma2_get_nla");

  if (me == 1) {
    // A notification put needs no address: it carries one.
    check(rma2_post_notification(port, other, 1, address, RMA2_COMPLETER_NOTIFICATION, RMA2_CMD_DEFAULT),
          "rma2_post_notification");
    RMA2_Notification arrival = take(port);
    double sum = 0;
    for (int i = 0; i < numbers; ++i) sum += data[i];
    printf("notification at process 1: ");
    rma2_noti_dump(&arrival);
    printf("sum %.0f\n", sum);
  } else {
    for (int i = 0; i < numbers; ++i) data[i] = i;
    RMA2_Notification notification = take(port);
    const RMA2_NLA remote = rma2_noti_get_notiput_payload(&notification);
    check(rma2_post_put_qw(port, other, region, 0, sizeof data, remote, RMA2_REQCOMPL_NOTIFICATION,
                           RMA2_CMD_DEFAULT),
          "rma2_post_put_qw");
    take(port);  // requester: the source may change

    // One word too far: the target's card refuses it, and both sides keep running.
    check(rma2_post_put_qw(port, other, region, 0, 8, remote + sizeof data, RMA2_NO_NOTIFICATION,
                           RMA2_CMD_DEFAULT),
          "rma2_post_put_qw");
    RMA2_Notification refusal = take(port);
    printf("notification at process 0: ");
    rma2_noti_dump(&refusal);
  }
  check(rma2_close(port), "rma2_close");
  return 0;
}
