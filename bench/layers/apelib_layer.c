// The library of the APENet machines: tags are the channels, and the network reads and writes the program's
// memory.
#include <apelib.h>
#include <stdlib.h>
#include <time.h>

#include "layer.h"

// Requests in the order in which they began.
struct Queue {
  ape_request* requests;
  long begun, room, ended;
};

static int own_rank;
static char* outgoing;
static char* incoming;
static size_t room_bytes;
static int channel_count;
static struct Queue* sends;
static struct Queue* receives;

static void check(int code, const char* call) {
  if (code != APE_OK) fail("%s: %s", call, ape_last_error());
}

void layer_open(long max_bytes, int channels) {
  check(ape_init(), "ape_init");
  check(ape_rank(&own_rank), "ape_rank");
  room_bytes = (size_t)max_bytes;
  channel_count = channels;
  outgoing = calloc((size_t)channels, room_bytes + 1);
  incoming = calloc((size_t)channels, room_bytes + 1);
  sends = calloc((size_t)channels, sizeof *sends);
  receives = calloc((size_t)channels, sizeof *receives);
  if (outgoing == NULL || incoming == NULL || sends == NULL || receives == NULL)
    fail("no memory for messages of %ld bytes", max_bytes);
}

static ape_request* next_request(struct Queue* queue) {
  if (queue->begun == queue->room) {
    queue->room = 2 * queue->room + 16;
    queue->requests = realloc(queue->requests, (size_t)queue->room * sizeof *queue->requests);
    if (queue->requests == NULL) fail("no memory for %ld requests", queue->room);
  }
  return &queue->requests[queue->begun++];
}

static void end_oldest(struct Queue* queue) {
  check(ape_wait(&queue->requests[queue->ended++], NULL), "ape_wait");
}

static void end_all(struct Queue* queues) {
  for (int channel = 0; channel < channel_count; ++channel) {
    while (queues[channel].ended < queues[channel].begun) end_oldest(&queues[channel]);
    free(queues[channel].requests);
  }
  free(queues);
}

void layer_close(void) {
  end_all(sends);
  end_all(receives);
  check(ape_finalize(), "ape_finalize");
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

void layer_send(int channel, long bytes) {
  char* data = outgoing + (size_t)channel * room_bytes;
  ape_request* request = next_request(&sends[channel]);
  check(ape_isend(data, (size_t)bytes, 1 - own_rank, channel, APE_ZERO_COPY, request), "ape_isend");
}

void layer_expect(int channel, long bytes) {
  char* data = incoming + (size_t)channel * room_bytes;
  ape_request* request = next_request(&receives[channel]);
  check(ape_irecv(data, (size_t)bytes, 1 - own_rank, channel, APE_ZERO_COPY, request), "ape_irecv");
}

void layer_take(int channel) {
  end_oldest(&receives[channel]);
}

void layer_await_sent(int channel) {
  end_oldest(&sends[channel]);
}
