/* Random legal calls of tnw.h from a seed, checked against what each lane must carry.
 *
 * A lane is a link and channel between two processes. Its messages, their sizes and bytes follow from the
 * seed and the lane alone, so both ends know them. Each process posts puts and credits of all its lanes,
 * polls and waits, in an order of its own. It blocks only in what is bound to end: when it has posted
 * everything. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tnw.h>

enum { most_messages = 12, most_lanes = 6 * 64 };

static uint64_t mix(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

static uint64_t random_state;
static uint64_t draw(uint64_t bound) {
  return mix(random_state += 0x9e3779b97f4a7c15u) % bound;
}

static void check(tnw_status status, const char* call) {
  if (status == TNW_OK || status == TNW_NOT_YET) return;
  fprintf(stderr, "fuzz: %s: %s\n", call, tnw_strerror(status));
  exit(1);
}

struct Lane {
  uint64_t name; /* made of the sender's rank, link and channel */
  tnw_link link;
  int channel;
  int count;
  int posted, ended; /* puts and their ends; or credits and what they took */
  unsigned char* buffers[most_messages];
};

static struct Lane outgoing[most_lanes], incoming[most_lanes];
static size_t max_bytes;

static size_t size_of(const struct Lane* lane, int number) {
  const uint64_t drawn = mix(lane->name ^ mix((uint64_t)number + 1));
  return drawn % 5 == 0 ? 0 : drawn % 5 == 1 ? max_bytes : drawn / 8 % (max_bytes + 1);
}

static unsigned char byte_of(const struct Lane* lane, int number, size_t at) {
  return (unsigned char)mix(lane->name + 1000003u * (uint64_t)number + at);
}

static void set_up(struct Lane* lane, uint64_t seed, int sender, tnw_link sender_link, tnw_link link,
                   int channel) {
  lane->name = mix(seed ^ mix((uint64_t)sender << 32 | (uint64_t)sender_link << 16 | (uint64_t)channel));
  lane->link = link;
  lane->channel = channel;
  /* Few lanes at once, so that a run has many different sequences. */
  lane->count = mix(lane->name) % 16 == 0
                    ? (int)(mix(lane->name + 1) % (1 + mix(lane->name + 2) % most_messages) + 1)
                    : 0;
  for (int i = 0; i < lane->count; ++i) lane->buffers[i] = malloc(max_bytes + 1);
}

static void post_put(struct Lane* lane) {
  const int number = lane->posted++;
  const size_t bytes = size_of(lane, number);
  for (size_t i = 0; i < bytes; ++i) lane->buffers[number][i] = byte_of(lane, number, i);
  check(tnw_put(lane->link, lane->channel, lane->buffers[number], bytes), "tnw_put");
}

static void post_credit(struct Lane* lane) {
  const int number = lane->posted++;
  check(tnw_credit(lane->link, lane->channel, lane->buffers[number], size_of(lane, number)), "tnw_credit");
}

static void end_put(struct Lane* lane, int waits) {
  const tnw_status status =
      waits ? tnw_wait_put(lane->link, lane->channel) : tnw_poll_put(lane->link, lane->channel);
  check(status, "tnw_wait_put");
  lane->ended += status == TNW_OK;
}

static void end_credit(struct Lane* lane, int waits) {
  size_t bytes = 0;
  const tnw_status status =
      waits ? tnw_wait(lane->link, lane->channel, &bytes) : tnw_poll(lane->link, lane->channel, &bytes);
  check(status, "tnw_wait");
  if (status != TNW_OK) return;
  const int number = lane->ended++;
  if (bytes != size_of(lane, number)) {
    fprintf(stderr, "fuzz: message %d has %zu bytes, expected %zu\n", number, bytes, size_of(lane, number));
    exit(1);
  }
  for (size_t i = 0; i < bytes; ++i) {
    if (lane->buffers[number][i] == byte_of(lane, number, i)) continue;
    fprintf(stderr, "fuzz: message %d is wrong at byte %zu\n", number, i);
    exit(1);
  }
}

int main(int argc, char** argv) {
  const uint64_t first_seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  const int sequences = argc > 2 ? atoi(argv[2]) : 1;
  int rank = 0, size = 0, channels = 0;
  check(tnw_open(), "tnw_open");
  check(tnw_rank(&rank, &size), "tnw_rank");
  check(tnw_channels(&channels), "tnw_channels");
  check(tnw_max_bytes(&max_bytes), "tnw_max_bytes");
  long messages = 0;
  for (int sequence = 0; sequence < sequences; ++sequence) {
    const uint64_t seed = first_seed + (uint64_t)sequence;
    random_state = mix(seed) ^ (uint64_t)rank;
    int lanes = 0;
    for (tnw_link link = TNW_X_PLUS; link < TNW_LINKS; ++link) {
      int there = 0;
      if (tnw_neighbour(link, &there) != TNW_OK) continue;
      for (int channel = 0; channel < channels; ++channel, ++lanes) {
        memset(&outgoing[lanes], 0, sizeof outgoing[lanes]);
        memset(&incoming[lanes], 0, sizeof incoming[lanes]);
        set_up(&outgoing[lanes], seed, rank, link, link, channel);
        set_up(&incoming[lanes], seed, there, (tnw_link)(link ^ 1), link, channel);
      }
    }
    int left = 0;
    for (int i = 0; i < lanes; ++i) left += outgoing[i].count + incoming[i].count;
    messages += left;
    while (left > 0) {
      struct Lane* out = &outgoing[draw((uint64_t)lanes)];
      struct Lane* in = &incoming[draw((uint64_t)lanes)];
      switch (draw(4)) {
        case 0:
          if (out->posted < out->count) post_put(out), --left;
          break;
        case 1:
          if (in->posted < in->count) post_credit(in), --left;
          break;
        case 2:
          if (out->ended < out->posted) end_put(out, 0);
          break;
        default:
          if (in->ended < in->posted) end_credit(in, 0);
      }
    }
    for (int i = 0; i < lanes; ++i) {
      while (incoming[i].ended < incoming[i].count) end_credit(&incoming[i], 1);
      while (outgoing[i].ended < outgoing[i].count) end_put(&outgoing[i], 1);
      for (int k = 0; k < incoming[i].count; ++k) free(incoming[i].buffers[k]);
      for (int k = 0; k < outgoing[i].count; ++k) free(outgoing[i].buffers[k]);
    }
  }
  check(tnw_close(), "tnw_close");
  printf("rank %d: %ld messages\n", rank, messages);
  return 0;
}
