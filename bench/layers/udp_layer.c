// UDP through the kernels of the nodes: a message is a datagram, and the two processes have one socket each.
#define _POSIX_C_SOURCE 199309L
#include <ape_udp.h>
#include <stdlib.h>
#include <time.h>

#include "layer.h"

static ape_udp* udp;
static int own_rank, peer;
static char *outgoing, *incoming;
static size_t room_bytes;

static void check(ape_udp_status status, const char* call) {
  if (status != APE_UDP_OK) fail("%s: %s", call, ape_udp_strerror(status));
}

void layer_open(void) {
  check(ape_udp_open(&udp), "ape_udp_open");
  check(ape_udp_rank(udp, &own_rank, NULL), "ape_udp_rank");
}

void layer_connect(const struct Slot* slots, int count, long max_bytes) {
  if (count != 1) fail("%d channels: expected one, because datagrams carry no number of theirs", count);
  peer = slots[0].rank;
  room_bytes = (size_t)max_bytes;
  outgoing = calloc(1, room_bytes + 1);
  incoming = calloc(1, room_bytes + 1);
  if (outgoing == NULL || incoming == NULL) fail("no memory for messages of %ld bytes", max_bytes);
}

void layer_close(void) {
  check(ape_udp_close(udp), "ape_udp_close");
  free(outgoing);
  free(incoming);
}

int layer_rank(void) {
  return own_rank;
}

double layer_time_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

// The kernel copies the datagram.
void layer_send(int slot, long bytes, bool awaited) {
  (void)slot;
  (void)awaited;
  check(ape_udp_send(udp, peer, outgoing, (size_t)bytes), "ape_udp_send");
}

void layer_expect(int slot, long bytes) {
  (void)slot;
  (void)bytes;
}

void layer_take(int slot) {
  (void)slot;
  check(ape_udp_receive(udp, incoming, room_bytes, NULL, NULL), "ape_udp_receive");
}

void layer_await_sent(int slot) {
  (void)slot;
}

const bool layer_puts_silently = false;

void layer_put(int slot, long bytes, bool awaited) {
  layer_send(slot, bytes, awaited);
}
