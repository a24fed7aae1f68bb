// EXTOLL's VELO by its own library: a message is as many packets as it needs.
#define _POSIX_C_SOURCE 199309L
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <velo2.h>

#include "layer.h"

enum { most_packet_bytes = 120, last_node = 0xfffd };

static velo2_port_t port;
static velo2_connection_t other;
static int own_rank;
static uint32_t packet_bytes;  // of this card

static void check(velo2_ret_t result, const char* call) {
  if (result != VELO2_RET_SUCCESS) fail("%s: %s", call, velo2_strerror(result));
}

// The other process is on the only other node that has one; the one on the lower node is rank 0.
static void find_other(void) {
  const velo2_nodeid_t own = velo2_get_nodeid(&port);
  for (int node = 0; node <= last_node; ++node) {
    if (node == own || velo2_connect(&port, &other, (velo2_nodeid_t)node, 0) != VELO2_RET_SUCCESS) continue;
    own_rank = node < own ? 1 : 0;
    return;
  }
  fail("expected two processes on two nodes");
}

static void receive(int channel) {
  char packet[most_packet_bytes];
  uint32_t length;
  uint32_t source;
  uint8_t tag;
  check(velo2_recv(&port, packet, sizeof packet, &length, &source, &tag, 0), "velo2_recv");
  if (tag != channel) fail("a packet of channel %d instead of %d", tag, channel);
}

// Each side tries how much a packet carries by a message to itself.
static void find_packet_size(void) {
  const char nothing[most_packet_bytes] = {0};
  velo2_connection_t self;
  check(velo2_connect(&port, &self, velo2_get_nodeid(&port), velo2_get_vpid(&port)), "velo2_connect");
  packet_bytes = most_packet_bytes;
  while (velo2_send(&self, nothing, packet_bytes, 0, 0) == VELO2_RET_INV_MSG) --packet_bytes;
  receive(0);
  check(velo2_disconnect(&self), "velo2_disconnect");
}

void layer_open(long max_bytes, int channels) {
  (void)max_bytes;
  if (channels > 256) fail("--channels = %d: expected at most 256, the tags", channels);
  check(velo2_open(&port), "velo2_open");
  find_other();
  find_packet_size();
}

void layer_close(void) {
  check(velo2_close(&port), "velo2_close");
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

static long expected_bytes[256];

void layer_send(int channel, long bytes) {
  const char nothing[most_packet_bytes] = {0};
  for (long left = packets_of(bytes); left > 0; --left) {
    const uint32_t part =
        left > 1 ? packet_bytes : (uint32_t)(bytes - (packets_of(bytes) - 1) * packet_bytes);
    check(velo2_send(&other, nothing, part, (uint8_t)channel, 0), "velo2_send");
  }
}

void layer_expect(int channel, long bytes) {
  expected_bytes[channel] = bytes;
}

void layer_take(int channel) {
  for (long left = packets_of(expected_bytes[channel]); left > 0; --left) receive(channel);
}

void layer_await_sent(int channel) {
  (void)channel;  // velo2_send() has copied the message
}
