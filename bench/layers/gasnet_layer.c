// GASNet-1. A message is a request: short if it is empty, medium as long as its bytes fit, and long above,
// into the segment of the other process.
#include <gasnet.h>
#include <stdlib.h>
#include <time.h>

#include "layer.h"

enum { short_handler = 200, data_handler, most_under_way = 4096 };

struct End {
  struct Slot slot;
  volatile long arrived;  // and not taken
  // Awaited puts, and accesses, in the order in which they began.
  gasnet_handle_t under_way[most_under_way];
  long begun, ended;
};

static struct End* ends;
static int end_count;
static char* outgoing;
static size_t room_bytes;
static gasnet_seginfo_t* segments;  // segment of each rank

static void check(int code, const char* call) {
  if (code != GASNET_OK) fail("%s: %s", call, gasnet_ErrorDesc(code));
}

static void take_short(gasnet_token_t token, gasnet_handlerarg_t slot) {
  (void)token;
  ++ends[slot].arrived;
}

static void take_data(gasnet_token_t token, void* data, size_t bytes, gasnet_handlerarg_t slot) {
  (void)data;
  (void)bytes;
  take_short(token, slot);
}

void layer_open(void) {
  check(gasnet_init(NULL, NULL), "gasnet_init");
}

void layer_connect(const struct Slot* slots, int count, long max_bytes) {
  gasnet_handlerentry_t table[] = {{short_handler, (void (*)())take_short},
                                   {data_handler, (void (*)())take_data}};
  end_count = count;
  ends = calloc((size_t)count, sizeof *ends);
  room_bytes = ((size_t)max_bytes + 64) / 64 * 64;
  outgoing = calloc((size_t)count, room_bytes);
  segments = calloc(gasnet_nodes(), sizeof *segments);
  if (ends == NULL || outgoing == NULL || segments == NULL)
    fail("no memory for messages of %ld bytes", max_bytes);
  for (int number = 0; number < count; ++number) ends[number].slot = slots[number];
  const size_t page = GASNET_PAGESIZE;
  const size_t segment_bytes = ((size_t)count * room_bytes + page - 1) / page * page;
  check(gasnet_attach(table, sizeof table / sizeof table[0], segment_bytes, 0), "gasnet_attach");
  check(gasnet_getSegmentInfo(segments, (int)gasnet_nodes()), "gasnet_getSegmentInfo");
}

// The others may still wait for this process's answers.
void layer_close(void) {
  gasnet_wait_syncnbi_all();
  gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
  check(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS), "gasnet_barrier_wait");
  free(ends);
  free(outgoing);
  free(segments);
  gasnet_exit(0);
}

int layer_rank(void) {
  return (int)gasnet_mynode();
}

double layer_time_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static void* destination(const struct End* end) {
  return (char*)segments[end->slot.rank].addr + (size_t)end->slot.there * room_bytes;
}

// Requests return when their source is free.
void layer_send(int slot, long bytes, bool awaited) {
  (void)awaited;
  const struct End* end = &ends[slot];
  const gasnet_node_t node = (gasnet_node_t)end->slot.rank;
  const gasnet_handlerarg_t there = end->slot.there;
  char* data = outgoing + (size_t)slot * room_bytes;
  const size_t size = (size_t)bytes;
  if (size == 0) {
    check(gasnet_AMRequestShort1(node, short_handler, there), "gasnet_AMRequestShort1");
  } else if (size <= gasnet_AMMaxMedium()) {
    check(gasnet_AMRequestMedium1(node, data_handler, data, size, there), "gasnet_AMRequestMedium1");
  } else {
    check(gasnet_AMRequestLong1(node, data_handler, data, size, destination(end), there),
          "gasnet_AMRequestLong1");
  }
}

void layer_expect(int slot, long bytes) {
  (void)slot;
  (void)bytes;
}

void layer_take(int slot) {
  GASNET_BLOCKUNTIL(ends[slot].arrived > 0);
  --ends[slot].arrived;
}

static void begin(struct End* end, gasnet_handle_t access) {
  if (end->begun - end->ended == most_under_way) fail("expected at most %d accesses at once", most_under_way);
  end->under_way[end->begun++ % most_under_way] = access;
}

void layer_end_access(int slot) {
  struct End* end = &ends[slot];
  gasnet_wait_syncnb(end->under_way[end->ended++ % most_under_way]);
}

// A request has been read when its call returns: only puts are under way.
void layer_await_sent(int slot) {
  if (ends[slot].ended < ends[slot].begun) layer_end_access(slot);
}

const bool layer_puts_silently = true;

void layer_put(int slot, long bytes, bool awaited) {
  const struct End* end = &ends[slot];
  if (awaited) {
    layer_begin_access(slot, bytes, false);
    return;
  }
  gasnet_put_nbi_bulk((gasnet_node_t)end->slot.rank, destination(end), outgoing + (size_t)slot * room_bytes,
                      (size_t)bytes);
}

void layer_begin_access(int slot, long bytes, bool gets) {
  struct End* end = &ends[slot];
  char* data = outgoing + (size_t)slot * room_bytes;
  const gasnet_node_t node = (gasnet_node_t)end->slot.rank;
  begin(end, gets ? gasnet_get_nb_bulk(data, node, destination(end), (size_t)bytes)
                  : gasnet_put_nb_bulk(node, destination(end), data, (size_t)bytes));
}
