// The library of APENet's cards. A message is a put into a buffer that the other process has published,
// announced there; an empty one, and the exchange of the buffers' names, are sends.
#include <ape_rdma.h>
#include <stdlib.h>

#include "layer.h"

enum { most_channels = 64, hello = 1 };

static ape_rdma_port* port;
static ape_rdma_address other;
static int own_rank;
static ape_rdma_buffer theirs;
static char* outgoing;
static char* incoming;
static size_t room_bytes;
// Of each channel: what has arrived and has not been taken, and what has left and has not been awaited.
static long arrived[most_channels];
static long left[most_channels];

static void check(ape_rdma_status status, const char* call) {
  if (status != APE_RDMA_OK) fail("%s: %s", call, ape_rdma_strerror(status));
}

static int queue_of(int channel) {
  int queues = 1;
  check(ape_rdma_queues(port, &queues), "ape_rdma_queues");
  return channel % queues;
}

void layer_open(long max_bytes, int channels) {
  check(ape_rdma_open(APE_RDMA_ANY_PORT, &port), "ape_rdma_open");
  check(ape_rdma_rank(port, &own_rank, NULL), "ape_rdma_rank");
  check(ape_rdma_address_of_rank(port, 1 - own_rank, &other), "ape_rdma_address_of_rank");
  if (channels > most_channels) fail("--channels = %d: expected at most %d", channels, (int)most_channels);
  room_bytes = (size_t)max_bytes + 64;
  const size_t all_bytes = (size_t)channels * room_bytes;
  // At the begin of a page, so that a card that translates addresses looks up as few pages as it can.
  outgoing = aligned_alloc(4096, (all_bytes + 4095) / 4096 * 4096);
  incoming = aligned_alloc(4096, (all_bytes + 4095) / 4096 * 4096);
  if (outgoing == NULL || incoming == NULL) fail("no memory for messages of %ld bytes", max_bytes);
  check(ape_rdma_register(port, outgoing, all_bytes), "ape_rdma_register");
  check(ape_rdma_register(port, incoming, all_bytes), "ape_rdma_register");
  ape_rdma_buffer* name = (ape_rdma_buffer*)outgoing;
  check(ape_rdma_publish(port, incoming, all_bytes, name), "ape_rdma_publish");
  const ape_rdma_segment said = {name, sizeof *name};
  ape_rdma_event event;
  check(ape_rdma_post_send(port, other, 0, &said, 1, 0, hello), "ape_rdma_post_send");
  check(ape_rdma_wait(port, &event), "ape_rdma_wait");
  check(ape_rdma_read_message(port, &theirs, sizeof theirs), "ape_rdma_read_message");
}

void layer_close(void) {
  check(ape_rdma_close(port), "ape_rdma_close");
}

int layer_rank(void) {
  return own_rank;
}

double layer_time_us(void) {
  double time_us = 0;
  check(ape_rdma_time_us(port, &time_us), "ape_rdma_time_us");
  return time_us;
}

void layer_send(int channel, long bytes) {
  const size_t offset = (size_t)channel * room_bytes;
  const ape_rdma_segment data = {outgoing + offset, (size_t)bytes};
  check(ape_rdma_post_put(port, other, queue_of(channel), &data, 1, theirs, offset,
                          APE_RDMA_NOTIFY | (layer_awaits ? APE_RDMA_SIGNAL : 0), (uint64_t)channel),
        "ape_rdma_post_put");
}

void layer_expect(int channel, long bytes) {
  (void)channel;
  (void)bytes;
}

static void take_event(void) {
  ape_rdma_event event;
  check(ape_rdma_wait(port, &event), "ape_rdma_wait");
  check(event.status, "event");
  if (event.kind == APE_RDMA_RX_DONE) ++arrived[event.cookie];
  if (event.kind == APE_RDMA_TX_DONE) ++left[event.cookie];
}

void layer_take(int channel) {
  while (arrived[channel] == 0) take_event();
  --arrived[channel];
}

void layer_await_sent(int channel) {
  while (left[channel] == 0) take_event();
  --left[channel];
}
