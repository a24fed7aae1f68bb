// EXTOLL's VELO by its own library: a message is as many packets as it needs.
#define _POSIX_C_SOURCE 199309L
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <velo2.h>

#include "layer.h"

enum { most_packet_bytes = 120, last_node = 0xfffd, most_slots = 256 };  // a slot is a tag

struct End {
  struct Slot slot;
  velo2_connection_t connection;
  long expected_bytes;
  long packets;  // arrived, and not taken
};

static velo2_port_t port;
static int own_rank;
static velo2_nodeid_t* nodes;  // node of each rank
static struct End ends[most_slots];
static uint32_t packet_bytes;  // packet size of this card

static void check(velo2_ret_t result, const char* call) {
  if (result != VELO2_RET_SUCCESS) fail("%s: %s", call, velo2_strerror(result));
}

static void find_processes(void) {
  int count = 0;
  nodes = calloc(last_node + 1, sizeof *nodes);
  if (nodes == NULL) fail("no memory for the nodes");
  for (int node = 0; node <= last_node; ++node) {
    velo2_connection_t connection;
    if (velo2_connect(&port, &connection, (velo2_nodeid_t)node, 0) != VELO2_RET_SUCCESS) continue;
    check(velo2_disconnect(&connection), "velo2_disconnect");
    if (node == velo2_get_nodeid(&port)) own_rank = count;
    nodes[count++] = (velo2_nodeid_t)node;
  }
}

// A neighbour may be ahead of this process: its packets, and those of other slots, are counted.
static void receive(void) {
  char packet[most_packet_bytes];
  uint32_t length;
  uint32_t source;
  uint8_t tag;
  check(velo2_recv(&port, packet, sizeof packet, &length, &source, &tag, 0), "velo2_recv");
  ++ends[tag].packets;
}

// Each side tries how much a packet carries by a message to itself.
static void find_packet_size(void) {
  const char nothing[most_packet_bytes] = {0};
  velo2_connection_t self;
  check(velo2_connect(&port, &self, velo2_get_nodeid(&port), velo2_get_vpid(&port)), "velo2_connect");
  packet_bytes = most_packet_bytes;
  while (velo2_send(&self, nothing, packet_bytes, most_slots - 1, 0) == VELO2_RET_INV_MSG) --packet_bytes;
  while (ends[most_slots - 1].packets == 0) receive();
  check(velo2_disconnect(&self), "velo2_disconnect");
}

void layer_open(void) {
  check(velo2_open(&port), "velo2_open");
  find_processes();
  find_packet_size();
}

void layer_connect(const struct Slot* slots, int count, long max_bytes) {
  (void)max_bytes;
  if (count >= most_slots) fail("%d slots: expected fewer than %d, the tags", count, most_slots);
  for (int number = 0; number < count; ++number) {
    ends[number].slot = slots[number];
    if (slots[number].rank < 0) continue;
    check(velo2_connect(&port, &ends[number].connection, nodes[slots[number].rank], 0), "velo2_connect");
  }
}

void layer_close(void) {
  check(velo2_close(&port), "velo2_close");
  free(nodes);
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

static long packets_of(long bytes) {
  return bytes <= packet_bytes ? 1 : (bytes + packet_bytes - 1) / packet_bytes;
}

// velo2_send() copies the message.
void layer_send(int slot, long bytes, bool awaited) {
  (void)awaited;
  const char nothing[most_packet_bytes] = {0};
  for (long left = packets_of(bytes); left > 0; --left) {
    const uint32_t part =
        left > 1 ? packet_bytes : (uint32_t)(bytes - (packets_of(bytes) - 1) * packet_bytes);
    check(velo2_send(&ends[slot].connection, nothing, part, (uint8_t)ends[slot].slot.there, 0), "velo2_send");
  }
}

void layer_expect(int slot, long bytes) {
  ends[slot].expected_bytes = bytes;
}

void layer_take(int slot) {
  const long packets = packets_of(ends[slot].expected_bytes);
  while (ends[slot].packets < packets) receive();
  ends[slot].packets -= packets;
}

void layer_await_sent(int slot) {
  (void)slot;
}

const bool layer_puts_silently = false;

void layer_put(int slot, long bytes, bool awaited) {
  layer_send(slot, bytes, awaited);
}
