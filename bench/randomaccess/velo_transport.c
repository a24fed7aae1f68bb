// EXTOLL's VELO. A packet carries as many updates as it can.
#include <stdlib.h>
#include <string.h>
#include <velo2.h>

#include "transport.h"

enum { most_packet_bytes = 120, last_node = 0xfffd, last_vpid = 0xfe };

static velo2_port_t port;
static velo2_connection_t* ranks;
static int rank_count, room, own_rank;
static size_t packet_updates;

static void check(velo2_ret_t result, const char* call) {
  if (result != VELO2_RET_SUCCESS) fail("%s: %s", call, velo2_strerror(result));
}

static bool connect_next(int node, int vpid) {
  if (rank_count == room) {
    room = 2 * room + 64;
    ranks = realloc(ranks, (size_t)room * sizeof *ranks);
    if (ranks == NULL) fail("no memory for %d connections", room);
  }
  const velo2_nodeid_t nodeid = (velo2_nodeid_t)node;
  if (velo2_connect(&port, &ranks[rank_count], nodeid, (velo2_vpid_t)vpid) != VELO2_RET_SUCCESS) return false;
  if (nodeid == velo2_get_nodeid(&port) && vpid == velo2_get_vpid(&port)) own_rank = rank_count;
  ++rank_count;
  return true;
}

// In the order of nodes, and of the processes of a node.
static void connect_all(void) {
  for (int node = 0; node <= last_node; ++node) {
    int vpid = 0;
    while (vpid <= last_vpid && connect_next(node, vpid)) ++vpid;
  }
}

// Tried by a message to itself.
static void find_packet_size(void) {
  const char nothing[most_packet_bytes] = {0};
  char packet[most_packet_bytes];
  uint32_t bytes = most_packet_bytes;
  uint32_t length, source;
  uint8_t tag;
  while (velo2_send(&ranks[own_rank], nothing, bytes, 0, 1) == VELO2_RET_INV_MSG) --bytes;
  check(velo2_recv(&port, packet, sizeof packet, &length, &source, &tag, 1), "velo2_recv");
  packet_updates = bytes / sizeof(uint64_t);
}

void transport_open(void) {
  check(velo2_open(&port), "velo2_open");
  connect_all();
  find_packet_size();
}

int transport_rank(void) {
  return own_rank;
}

int transport_size(void) {
  return rank_count;
}

bool transport_may_lose(void) {
  return false;
}

void transport_close(void) {
  check(velo2_close(&port), "velo2_close");
  free(ranks);
}

static void deliver(const void* packet, uint32_t length) {
  uint64_t updates[most_packet_bytes / sizeof(uint64_t)];
  memcpy(updates, packet, length);
  take_updates(updates, (int)(length / sizeof *updates));
}

void transport_poll(void) {
  char packet[most_packet_bytes];
  uint32_t length, source;
  uint8_t tag, type;
  while (velo2_probe_recv(&port, packet, sizeof packet, &length, &source, &tag, &type) == VELO2_RET_SUCCESS)
    deliver(packet, length);
}

void transport_wait(void) {
  char packet[most_packet_bytes];
  uint32_t length, source;
  uint8_t tag;
  check(velo2_recv(&port, packet, sizeof packet, &length, &source, &tag, 0), "velo2_recv");
  deliver(packet, length);
}

// While the target's mailbox is full velo2_send() waits, or asks to empty the own one first.
static void send_packet(int rank, const uint64_t* updates, size_t count) {
  velo2_ret_t result;
  while ((result = velo2_send(&ranks[rank], updates, (uint32_t)(count * sizeof *updates), 0, 0)) ==
         VELO2_RET_TRY_AGAIN)
    transport_poll();
  check(result, "velo2_send");
}

// The own mailbox is emptied between packets, as random_access.c does between calls.
void transport_send(int rank, const uint64_t* updates, int count) {
  for (size_t begin = 0; begin < (size_t)count; begin += packet_updates) {
    const size_t left = (size_t)count - begin;
    const size_t part = left < packet_updates ? left : packet_updates;
    if (begin > 0) transport_poll();
    send_packet(rank, updates + begin, part);
  }
}
