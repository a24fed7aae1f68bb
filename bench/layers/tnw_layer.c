// QPACE's torus network processor, by its own library. The two processes are neighbours.
#include <stdlib.h>
#include <tnw.h>

#include "layer.h"

static tnw_link to_other = TNW_LINKS;
static int own_rank;
static char* outgoing;
static char* incoming;
static size_t room_bytes;

static void check(tnw_status status, const char* call) {
  if (status != TNW_OK) fail("%s: %s", call, tnw_strerror(status));
}

void layer_open(long max_bytes, int channels) {
  int available = 0;
  check(tnw_open(), "tnw_open");
  check(tnw_rank(&own_rank, NULL), "tnw_rank");
  check(tnw_channels(&available), "tnw_channels");
  if (channels > available) fail("--channels = %d: expected at most %d", channels, available);
  // Where two links lead to the other node, process 0 takes the first and process 1 the last: its other end.
  for (tnw_link link = TNW_X_PLUS; link < TNW_LINKS; ++link) {
    int neighbour = 0;
    const int leads_there = tnw_neighbour(link, &neighbour) == TNW_OK && neighbour == 1 - own_rank;
    if (leads_there && (own_rank == 1 || to_other == TNW_LINKS)) to_other = link;
  }
  if (to_other == TNW_LINKS) fail("expected two processes on neighbouring nodes");
  room_bytes = (size_t)max_bytes;
  outgoing = calloc((size_t)channels, room_bytes + 1);
  incoming = calloc((size_t)channels, room_bytes + 1);
  if (outgoing == NULL || incoming == NULL) fail("no memory for messages of %ld bytes", max_bytes);
}

void layer_close(void) {
  check(tnw_close(), "tnw_close");
  free(outgoing);
  free(incoming);
}

int layer_rank(void) {
  return own_rank;
}

double layer_time_us(void) {
  double time_us = 0;
  check(tnw_time_us(&time_us), "tnw_time_us");
  return time_us;
}

void layer_send(int channel, long bytes) {
  check(tnw_put(to_other, channel, outgoing + (size_t)channel * room_bytes, (size_t)bytes), "tnw_put");
}

void layer_expect(int channel, long bytes) {
  check(tnw_credit(to_other, channel, incoming + (size_t)channel * room_bytes, (size_t)bytes), "tnw_credit");
}

void layer_take(int channel) {
  check(tnw_wait(to_other, channel, NULL), "tnw_wait");
}

void layer_await_sent(int channel) {
  check(tnw_wait_put(to_other, channel), "tnw_wait_put");
}
