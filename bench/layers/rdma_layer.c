// The library of APENet's cards. A message is a put into a buffer that the other process has published,
// announced there; processes tell each other the names of their buffers by sends.
#include <ape_rdma.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"

struct End {
  struct Slot slot;
  ape_rdma_address address;
  ape_rdma_buffer theirs;
  long arrived;  // and not taken
  long left;     // and not awaited
  long ended;    // accesses
};

static ape_rdma_port* port;
static int own_rank;
static int queues;
static struct End* ends;
static int end_count;
static int names_missing;
static char* outgoing;
static char* incoming;
static size_t room_bytes;

static void check(ape_rdma_status status, const char* call) {
  if (status != APE_RDMA_OK) fail("%s: %s", call, ape_rdma_strerror(status));
}

void layer_open(void) {
  check(ape_rdma_open(APE_RDMA_ANY_PORT, &port), "ape_rdma_open");
  check(ape_rdma_rank(port, &own_rank, NULL), "ape_rdma_rank");
  check(ape_rdma_queues(port, &queues), "ape_rdma_queues");
}

// A cookie names both ends of a put, because the events of both processes have it.
static uint64_t cookie_of(int slot) {
  return (uint64_t)slot << 32 | (uint64_t)ends[slot].slot.there;
}

// Announcements name the slot by the cookie, too.
static void take_name(int slot) {
  check(ape_rdma_read_message(port, &ends[slot].theirs, sizeof ends[slot].theirs), "ape_rdma_read_message");
  --names_missing;
}

static void take_event(void) {
  ape_rdma_event event;
  check(ape_rdma_wait(port, &event), "ape_rdma_wait");
  check(event.status, "event");
  const int at_target = (int)(event.cookie & UINT32_MAX);
  struct End* own = &ends[event.cookie >> 32];
  if (event.kind == APE_RDMA_TX_DONE) {
    ++own->left;
  } else if (event.kind == APE_RDMA_PUT_DELIVERED || event.kind == APE_RDMA_GET_DONE) {
    ++own->ended;
  } else if (event.kind == APE_RDMA_RX_DONE && event.buffer == 0) {
    take_name(at_target);
  } else if (event.kind == APE_RDMA_RX_DONE) {
    ++ends[at_target].arrived;
  }
}

static char* allocate(size_t bytes) {
  // At the begin of a page, so that a card that translates addresses looks up as few pages as it can.
  char* memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (memory == NULL) fail("no memory for %zu bytes", bytes);
  check(ape_rdma_register(port, memory, bytes), "ape_rdma_register");
  return memory;
}

static void send_name(int slot, ape_rdma_buffer name) {
  memcpy(outgoing, &name, sizeof name);
  const ape_rdma_segment said = {outgoing, sizeof name};
  check(ape_rdma_post_send(port, ends[slot].address, 0, &said, 1, 0, cookie_of(slot)), "ape_rdma_post_send");
  ++names_missing;
}

void layer_connect(const struct Slot* slots, int count, long max_bytes) {
  end_count = count;
  ends = calloc((size_t)count, sizeof *ends);
  if (ends == NULL) fail("no memory for %d slots", count);
  room_bytes = (size_t)max_bytes + 64;
  outgoing = allocate((size_t)count * room_bytes);
  incoming = allocate((size_t)count * room_bytes);
  ape_rdma_buffer own;
  check(ape_rdma_publish(port, incoming, (size_t)count * room_bytes, &own), "ape_rdma_publish");
  for (int slot = 0; slot < count; ++slot) {
    ends[slot].slot = slots[slot];
    if (slots[slot].rank < 0) continue;
    check(ape_rdma_address_of_rank(port, slots[slot].rank, &ends[slot].address), "ape_rdma_address_of_rank");
    send_name(slot, own);
  }
  while (names_missing > 0) take_event();
}

void layer_close(void) {
  check(ape_rdma_close(port), "ape_rdma_close");
  free(outgoing);
  free(incoming);
  free(ends);
}

int layer_rank(void) {
  return own_rank;
}

double layer_time_us(void) {
  double time_us = 0;
  check(ape_rdma_time_us(port, &time_us), "ape_rdma_time_us");
  return time_us;
}

static int queue_of(const struct End* end) {
  return end->slot.queue < 0 ? APE_RDMA_ANY_QUEUE : end->slot.queue % queues;
}

static void put(int slot, long bytes, unsigned flags) {
  const struct End* end = &ends[slot];
  const ape_rdma_segment data = {outgoing + (size_t)slot * room_bytes, (size_t)bytes};
  check(ape_rdma_post_put(port, end->address, queue_of(end), &data, 1, end->theirs,
                          (size_t)end->slot.there * room_bytes, flags, cookie_of(slot)),
        "ape_rdma_post_put");
}

void layer_send(int slot, long bytes, bool awaited) {
  put(slot, bytes, APE_RDMA_NOTIFY | (awaited ? APE_RDMA_SIGNAL : 0));
}

void layer_expect(int slot, long bytes) {
  (void)slot;
  (void)bytes;
}

void layer_take(int slot) {
  while (ends[slot].arrived == 0) take_event();
  --ends[slot].arrived;
}

void layer_await_sent(int slot) {
  while (ends[slot].left == 0) take_event();
  --ends[slot].left;
}

const bool layer_puts_silently = true;

void layer_put(int slot, long bytes, bool awaited) {
  put(slot, bytes, awaited ? APE_RDMA_SIGNAL : 0);
}

void layer_begin_access(int slot, long bytes, bool gets) {
  const struct End* end = &ends[slot];
  const ape_rdma_segment data = {outgoing + (size_t)slot * room_bytes, (size_t)bytes};
  if (!gets) {
    put(slot, bytes, APE_RDMA_DELIVERED);
    return;
  }
  check(ape_rdma_post_get(port, end->address, queue_of(end), &data, 1, end->theirs,
                          (size_t)end->slot.there * room_bytes, cookie_of(slot)),
        "ape_rdma_post_get");
}

void layer_end_access(int slot) {
  while (ends[slot].ended == 0) take_event();
  --ends[slot].ended;
}
