// A layer whose messages have a sender and a receiver with a tag, which is the receiver's slot. Before it
// includes this file, the layer defines the type Request and these functions.
#include <stdlib.h>
#include <string.h>

#include "layer.h"

static void begin_send(const void* data, long bytes, int rank, int tag, Request* request);
static void begin_receive(void* data, long bytes, int rank, int tag, Request* request);
static void end_request(Request* request);
static void close_library(void);

// Requests in the order in which they began.
struct Begun {
  Request request;
  bool awaited;
};
struct Queue {
  struct Begun* requests;
  long begun, room, ended;
};

static int slot_count;
static size_t room_bytes;
static struct Slot* ends;
static char* outgoing;
static char* incoming;
static struct Queue* sends;
static struct Queue* receives;

static void* allocate(size_t count, size_t bytes) {
  void* memory = calloc(count, bytes);
  if (memory == NULL) fail("no memory for %zu times %zu bytes", count, bytes);
  return memory;
}

void layer_connect(const struct Slot* slots, int count, long max_bytes) {
  slot_count = count;
  room_bytes = (size_t)max_bytes + 1;
  ends = allocate((size_t)count, sizeof *ends);
  memcpy(ends, slots, (size_t)count * sizeof *ends);
  outgoing = allocate((size_t)count, room_bytes);
  incoming = allocate((size_t)count, room_bytes);
  sends = allocate((size_t)count, sizeof *sends);
  receives = allocate((size_t)count, sizeof *receives);
}

static Request* next_request(struct Queue* queue, bool awaited) {
  if (queue->begun == queue->room) {
    queue->room = 2 * queue->room + 16;
    queue->requests = realloc(queue->requests, (size_t)queue->room * sizeof *queue->requests);
    if (queue->requests == NULL) fail("no memory for %ld requests", queue->room);
  }
  queue->requests[queue->begun].awaited = awaited;
  return &queue->requests[queue->begun++].request;
}

// Returns whether the program awaits it.
static bool end_oldest(struct Queue* queue) {
  struct Begun* oldest = &queue->requests[queue->ended++];
  end_request(&oldest->request);
  return oldest->awaited;
}

static void end_all(struct Queue* queues) {
  for (int slot = 0; slot < slot_count; ++slot) {
    while (queues[slot].ended < queues[slot].begun) end_oldest(&queues[slot]);
    free(queues[slot].requests);
  }
  free(queues);
}

void layer_close(void) {
  end_all(sends);
  end_all(receives);
  close_library();
  free(outgoing);
  free(incoming);
  free(ends);
}

void layer_send(int slot, long bytes, bool awaited) {
  begin_send(outgoing + (size_t)slot * room_bytes, bytes, ends[slot].rank, ends[slot].there,
             next_request(&sends[slot], awaited));
}

void layer_expect(int slot, long bytes) {
  begin_receive(incoming + (size_t)slot * room_bytes, bytes, ends[slot].rank, slot,
                next_request(&receives[slot], true));
}

void layer_take(int slot) {
  end_oldest(&receives[slot]);
}

void layer_await_sent(int slot) {
  while (!end_oldest(&sends[slot])) continue;
}

const bool layer_puts_silently = false;

void layer_put(int slot, long bytes, bool awaited) {
  layer_send(slot, bytes, awaited);
}
