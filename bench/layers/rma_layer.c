// EXTOLL's RMA by its own library: a message is a put with completer notification, up to 8 bytes an immediate
// put, and a notification put if it is empty. Sources are free when their requester notification has come.
#define _POSIX_C_SOURCE 199309L
#include <rma2.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "layer.h"

enum { last_node = 0xfffd, immediate_bytes = 8 };

static RMA2_Port port;
static RMA2_Handle other;
static RMA2_Region* region;
static RMA2_NLA remote;
static char* memory;  // of this process: what it sends, and then what it receives, for each channel
static size_t room_bytes;
static size_t incoming_offset;
static int own_rank;
static long arrived;
static long sent;

static void check(RMA2_ERROR error, const char* call) {
  if (error != RMA2_SUCCESS) fail("%s: %s", call, rma2_strerror(error));
}

// The other process is on the only other node that has one; the one on the lower node is rank 0.
static void find_other(void) {
  const RMA2_Nodeid own = rma2_get_nodeid(port);
  for (int node = 0; node <= last_node; ++node) {
    if (node == own || rma2_connect(port, (RMA2_Nodeid)node, 0, RMA2_CONN_DEFAULT, &other) != RMA2_SUCCESS)
      continue;
    own_rank = node < own ? 1 : 0;
    return;
  }
  fail("expected two processes on two nodes");
}

static uint64_t take_notification(void) {
  RMA2_Notification* notification;
  check(rma2_noti_get_block(port, &notification), "rma2_noti_get_block");
  if (rma2_noti_get_error(notification) != 0) fail("a notification has error bits");
  const uint64_t word = rma2_noti_get_notiput_payload(notification);
  ++*(rma2_noti_get_notification_type(notification) == RMA2_REQUESTER_NOTIFICATION ? &sent : &arrived);
  check(rma2_noti_free(port, notification), "rma2_noti_free");
  return word;
}

static void notify(uint64_t value, RMA2_Notification_Spec spec) {
  check(rma2_post_notification(port, other, 0, value, spec, RMA2_CMD_DEFAULT), "rma2_post_notification");
}

void layer_open(long max_bytes, int channels) {
  check(rma2_open(&port), "rma2_open");
  find_other();
  room_bytes = ((size_t)max_bytes + immediate_bytes) / immediate_bytes * immediate_bytes;
  incoming_offset = room_bytes * (size_t)channels;
  memory = calloc(2 * (size_t)channels, room_bytes);
  if (memory == NULL) fail("no memory for messages of %ld bytes", max_bytes);
  check(rma2_register(port, memory, 2 * incoming_offset, &region), "rma2_register");
  RMA2_NLA own;
  check(rma2_get_nla(region, 0, &own), "rma2_get_nla");
  notify(own, RMA2_COMPLETER_NOTIFICATION);
  remote = take_notification();
  arrived = 0;
}

// The other process says that it has taken everything: no source is read any more.
void layer_close(void) {
  notify(0, RMA2_COMPLETER_NOTIFICATION);
  layer_take(0);
  check(rma2_close(port), "rma2_close");
  free(memory);
}

int layer_rank(void) {
  return own_rank;
}

// Since the first call: a double holds no nanoseconds of a clock's whole time.
double layer_time_us(void) {
  static struct timespec first;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (first.tv_sec == 0 && first.tv_nsec == 0) first = now;
  return (double)(now.tv_sec - first.tv_sec) * 1e6 + (double)(now.tv_nsec - first.tv_nsec) / 1e3;
}

void layer_send(int channel, long bytes) {
  const RMA2_Notification_Spec spec = layer_awaits ? RMA2_REQCOMPL_NOTIFICATION : RMA2_COMPLETER_NOTIFICATION;
  const RMA2_NLA to = remote + incoming_offset + (size_t)channel * room_bytes;
  if (bytes == 0) {
    notify(0, spec);
  } else if (bytes <= immediate_bytes) {
    check(rma2_post_immediate_put(port, other, (uint32_t)bytes, 0, to, spec, RMA2_CMD_DEFAULT),
          "rma2_post_immediate_put");
  } else {
    check(rma2_post_put_bt(port, other, region, (uint32_t)((size_t)channel * room_bytes), (uint32_t)bytes, to,
                           spec, RMA2_CMD_DEFAULT),
          "rma2_post_put_bt");
  }
}

void layer_expect(int channel, long bytes) {
  (void)channel;
  (void)bytes;
}

void layer_take(int channel) {
  (void)channel;
  while (arrived == 0) take_notification();
  --arrived;
}

void layer_await_sent(int channel) {
  (void)channel;
  while (sent == 0) take_notification();
  --sent;
}
