// QPACE's torus network processor, by its own library. Both ends of a slot are on neighbours.
#include <stdlib.h>
#include <tnw.h>

#include "layer.h"

struct End {
  tnw_link link;
  int channel;
  bool* awaited;  // one for each put; the first `ended` have left
  long posted, room, ended;
};

static int own_rank;
static struct End* ends;
static int end_count;
static char* outgoing;
static char* incoming;
static size_t room_bytes;

static void check(tnw_status status, const char* call) {
  if (status != TNW_OK) fail("%s: %s", call, tnw_strerror(status));
}

void layer_open(void) {
  check(tnw_open(), "tnw_open");
  check(tnw_rank(&own_rank, NULL), "tnw_rank");
}

// Where two links lead to the other node, one end of a slot takes the first and the other end the last of its
// own: these are the two ends of a cable.
static tnw_link link_of(const struct Slot* slot, int number) {
  const bool is_first = number != slot->there ? number < slot->there : own_rank < slot->rank;
  tnw_link chosen = TNW_LINKS;
  for (tnw_link link = TNW_X_PLUS; link < TNW_LINKS; ++link) {
    int neighbour = 0;
    const bool leads_there = tnw_neighbour(link, &neighbour) == TNW_OK && neighbour == slot->rank;
    if (leads_there && (!is_first || chosen == TNW_LINKS)) chosen = link;
  }
  if (chosen == TNW_LINKS) fail("process %d is on no neighbour of process %d", slot->rank, own_rank);
  return chosen;
}

void layer_connect(const struct Slot* slots, int count, long max_bytes) {
  int channels = 0;
  end_count = count;
  check(tnw_channels(&channels), "tnw_channels");
  room_bytes = (size_t)max_bytes + 1;
  ends = calloc((size_t)count, sizeof *ends);
  outgoing = calloc((size_t)count, room_bytes);
  incoming = calloc((size_t)count, room_bytes);
  if (ends == NULL || outgoing == NULL || incoming == NULL)
    fail("no memory for messages of %ld bytes", max_bytes);
  for (int number = 0; number < count; ++number) {
    const struct Slot* slot = &slots[number];
    if (slot->rank < 0) continue;
    if (slot->queue >= channels) fail("--channels: expected at most %d", channels);
    ends[number].link = link_of(slot, number);
    ends[number].channel = slot->queue < 0 ? 0 : slot->queue;
  }
}

void layer_close(void) {
  check(tnw_close(), "tnw_close");
  for (int number = 0; number < end_count; ++number) free(ends[number].awaited);
  free(ends);
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

void layer_send(int slot, long bytes, bool awaited) {
  struct End* end = &ends[slot];
  if (end->posted == end->room) {
    end->room = 2 * end->room + 16;
    end->awaited = realloc(end->awaited, (size_t)end->room * sizeof *end->awaited);
    if (end->awaited == NULL) fail("no memory for %ld puts", end->room);
  }
  end->awaited[end->posted++] = awaited;
  check(tnw_put(end->link, end->channel, outgoing + (size_t)slot * room_bytes, (size_t)bytes), "tnw_put");
}

void layer_expect(int slot, long bytes) {
  check(tnw_credit(ends[slot].link, ends[slot].channel, incoming + (size_t)slot * room_bytes, (size_t)bytes),
        "tnw_credit");
}

void layer_take(int slot) {
  check(tnw_wait(ends[slot].link, ends[slot].channel, NULL), "tnw_wait");
}

// tnw_wait_put() ends the oldest put, awaited or not.
void layer_await_sent(int slot) {
  struct End* end = &ends[slot];
  do {
    check(tnw_wait_put(end->link, end->channel), "tnw_wait_put");
  } while (!end->awaited[end->ended++]);
}

const bool layer_puts_silently = false;

void layer_put(int slot, long bytes, bool awaited) {
  layer_send(slot, bytes, awaited);
}
