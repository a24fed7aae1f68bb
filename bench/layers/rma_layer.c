// EXTOLL's RMA by its own library: a message is a put with completer notification, up to 8 bytes an immediate
// put, and a notification put if it is empty. Sources are free when their requester notification has come.
#define _POSIX_C_SOURCE 199309L
#include <rma2.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "layer.h"

enum { last_node = 0xfffd, nodes_most = last_node + 1, immediate_bytes = 8 };

struct End {
  struct Slot slot;
  RMA2_Handle handle;
  RMA2_NLA remote;  // where its messages go
};

static RMA2_Port port;
static RMA2_Region* region;
static char* memory;  // this process's memory: what it sends, and then what it receives, for each slot
static size_t room_bytes;
static size_t incoming_offset;
static int own_rank;
static RMA2_Nodeid* nodes;  // node of each rank
static long* arrived;       // from each node, and not taken
static long sent;
static struct End* ends;

static void check(RMA2_ERROR error, const char* call) {
  if (error != RMA2_SUCCESS) fail("%s: %s", call, rma2_strerror(error));
}

static void* allocate(size_t count, size_t bytes) {
  void* allocated = calloc(count, bytes);
  if (allocated == NULL) fail("no memory for %zu times %zu bytes", count, bytes);
  return allocated;
}

static void find_processes(void) {
  int count = 0;
  nodes = allocate(nodes_most, sizeof *nodes);
  for (int node = 0; node <= last_node; ++node) {
    RMA2_Handle handle;
    if (rma2_connect(port, (RMA2_Nodeid)node, 0, RMA2_CONN_DEFAULT, &handle) != RMA2_SUCCESS) continue;
    check(rma2_disconnect(port, handle), "rma2_disconnect");
    if (node == rma2_get_nodeid(port)) own_rank = count;
    nodes[count++] = (RMA2_Nodeid)node;
  }
}

// A notification says from which node a message is. The slots of a node need not be told apart: a message of
// each is taken in every round. A notification put with a class is the address of the sender's memory, for
// the slot of that number less one. Returns whether it was one.
static bool take_notification(void) {
  RMA2_Notification* notification;
  check(rma2_noti_get_block(port, &notification), "rma2_noti_get_block");
  if (rma2_noti_get_error(notification) != 0) fail("a notification has error bits");
  const bool has_left = rma2_noti_get_notification_type(notification) == RMA2_REQUESTER_NOTIFICATION;
  const bool is_word = rma2_noti_get_cmd(notification) == RMA2_NOTIFICATION_PUT;
  const int said_slot = is_word && !has_left ? rma2_noti_get_notiput_class(notification) - 1 : -1;
  if (said_slot >= 0) {
    ends[said_slot].remote = rma2_noti_get_notiput_payload(notification);
  } else {
    ++*(has_left ? &sent : &arrived[rma2_noti_get_remote_nodeid(notification)]);
  }
  check(rma2_noti_free(port, notification), "rma2_noti_free");
  return said_slot >= 0;
}

static void notify(int slot, RMA2_Class mclass, uint64_t value, RMA2_Notification_Spec spec) {
  check(rma2_post_notification(port, ends[slot].handle, mclass, value, spec, RMA2_CMD_DEFAULT),
        "rma2_post_notification");
}

void layer_open(void) {
  check(rma2_open(&port), "rma2_open");
  arrived = allocate(nodes_most, sizeof *arrived);
  find_processes();
}

void layer_connect(const struct Slot* slots, int count, long max_bytes) {
  room_bytes = ((size_t)max_bytes + immediate_bytes) / immediate_bytes * immediate_bytes;
  incoming_offset = room_bytes * (size_t)count;
  memory = allocate(2 * (size_t)count, room_bytes);
  ends = allocate((size_t)count, sizeof *ends);
  check(rma2_register(port, memory, 2 * incoming_offset, &region), "rma2_register");
  RMA2_NLA own;
  check(rma2_get_nla(region, incoming_offset, &own), "rma2_get_nla");
  int missing = 0;
  for (int number = 0; number < count; ++number) {
    const struct Slot* slot = &slots[number];
    ends[number].slot = *slot;
    if (slot->rank < 0) continue;
    check(rma2_connect(port, nodes[slot->rank], 0, RMA2_CONN_DEFAULT, &ends[number].handle), "rma2_connect");
    const RMA2_Class there = (RMA2_Class)(slot->there + 1);
    notify(number, there, own + (size_t)number * room_bytes, RMA2_COMPLETER_NOTIFICATION);
    ++missing;
  }
  while (missing > 0) missing -= take_notification() ? 1 : 0;
}

// The other processes say that they have taken everything: no source is read any more.
void layer_close(void) {
  const int count = (int)(incoming_offset / room_bytes);
  for (int number = 0; number < count; ++number) {
    if (ends[number].slot.rank >= 0) notify(number, 0, 0, RMA2_COMPLETER_NOTIFICATION);
  }
  for (int number = 0; number < count; ++number) {
    if (ends[number].slot.rank >= 0) layer_take(number);
  }
  check(rma2_close(port), "rma2_close");
  free(memory);
  free(ends);
  free(nodes);
  free(arrived);
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

static void put(int slot, long bytes, RMA2_Notification_Spec spec) {
  const struct End* end = &ends[slot];
  if (bytes == 0) {
    notify(slot, 0, 0, spec);
  } else if (bytes <= immediate_bytes) {
    check(rma2_post_immediate_put(port, end->handle, (uint32_t)bytes, 0, end->remote, spec, RMA2_CMD_DEFAULT),
          "rma2_post_immediate_put");
  } else {
    check(rma2_post_put_bt(port, end->handle, region, (uint32_t)((size_t)slot * room_bytes), (uint32_t)bytes,
                           end->remote, spec, RMA2_CMD_DEFAULT),
          "rma2_post_put_bt");
  }
}

void layer_send(int slot, long bytes, bool awaited) {
  put(slot, bytes, awaited ? RMA2_REQCOMPL_NOTIFICATION : RMA2_COMPLETER_NOTIFICATION);
}

void layer_expect(int slot, long bytes) {
  (void)slot;
  (void)bytes;
}

void layer_take(int slot) {
  const RMA2_Nodeid source = nodes[ends[slot].slot.rank];
  while (arrived[source] == 0) take_notification();
  --arrived[source];
}

void layer_await_sent(int slot) {
  (void)slot;
  while (sent == 0) take_notification();
  --sent;
}

const bool layer_puts_silently = true;

void layer_put(int slot, long bytes, bool awaited) {
  put(slot, bytes, awaited ? RMA2_REQUESTER_NOTIFICATION : RMA2_NO_NOTIFICATION);
}

// A put tells its poster nothing of its end.
void layer_begin_access(int slot, long bytes, bool gets) {
  const struct End* end = &ends[slot];
  if (!gets) fail("a put of RMA does not report that it has ended at the target");
  check(rma2_post_get_bt(port, end->handle, region, (uint32_t)((size_t)slot * room_bytes), (uint32_t)bytes,
                         end->remote, RMA2_COMPLETER_NOTIFICATION, RMA2_CMD_DEFAULT),
        "rma2_post_get_bt");
}

void layer_end_access(int slot) {
  layer_take(slot);
}
