// Random legal sequences of calls, from a seed, against a model in memory. All ranks draw the same numbers,
// so each knows what every other posts, in which order, and with which data: the k-th receive that a rank
// posts for a source and a tag gets the k-th message of that source with this tag, cut to its room.
// Arguments: seed, sequences.
#include <stdint.h>
#include <string.h>

#include "checks.h"

enum { MOST_RANKS = 8, MOST_MESSAGES = 10, MOST_POSTS = 2 * MOST_MESSAGES };

static int rank, size;
static uint64_t state;

static uint64_t draw(uint64_t below) {
  state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t z = state;
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return (z ^ (z >> 31)) % below;
}

struct message {
  int from, to, tag, send_how, receive_how;
  size_t bytes, room;
  uint64_t data;  // the bytes are made of it
};

// A send or a receive in the order of posting of one rank.
struct post {
  int message;
  int is_send;
};

static unsigned char byte_of(uint64_t data, size_t place) {
  return (unsigned char)((data >> (place % 7)) + place);
}

static size_t random_size(void) {
  static const size_t edges[] = {0, 1, 8, 168, 169, 4096, 4097, 8192, 65536, 65537, 100000};
  return draw(3) != 0 ? draw(600) : edges[draw(sizeof edges / sizeof *edges)];
}

static int is_same_queue(const struct message* a, const struct message* b) {
  return a->from == b->from && a->to == b->to && a->tag == b->tag;
}

// The posts of rank `who`, shuffled.
static int posts_of(int who, const struct message* messages, int count, struct post* posts) {
  int total = 0;
  for (int i = 0; i < count; ++i) {
    if (messages[i].from == who) posts[total++] = (struct post){i, 1};
    if (messages[i].to == who) posts[total++] = (struct post){i, 0};
  }
  for (int i = total - 1; i > 0; --i) {
    const int j = (int)draw((uint64_t)i + 1);
    const struct post kept = posts[i];
    posts[i] = posts[j];
    posts[j] = kept;
  }
  return total;
}

static void exchange_messages(void) {
  struct message messages[MOST_MESSAGES];
  static struct post posts[MOST_RANKS][MOST_POSTS];
  int totals[MOST_RANKS];
  const int count = 1 + (int)draw(1 + draw(MOST_MESSAGES));  // mostly few, so that a run has many sequences
  for (int i = 0; i < count; ++i) {
    messages[i] = (struct message){(int)draw((uint64_t)size),
                                   (int)draw((uint64_t)size),
                                   (int)draw(2),
                                   (int)draw(3),
                                   (int)draw(3),
                                   random_size(),
                                   0,
                                   draw(UINT64_MAX)};
    messages[i].room = draw(4) == 0 ? random_size() : messages[i].bytes;
  }
  for (int who = 0; who < size; ++who) totals[who] = posts_of(who, messages, count, posts[who]);
  ape_request requests[MOST_POSTS];
  unsigned char* memory[MOST_POSTS] = {NULL};
  int got[MOST_POSTS];  // the message that a receive must get
  for (int p = 0; p < totals[rank]; ++p) {
    const struct message* mine = &messages[posts[rank][p].message];
    if (posts[rank][p].is_send) {
      memory[p] = malloc(mine->bytes + 1);
      for (size_t i = 0; i < mine->bytes; ++i) memory[p][i] = byte_of(mine->data, i);
      CALL(ape_isend(memory[p], mine->bytes, mine->to, mine->tag, mine->send_how, &requests[p]));
      if (mine->send_how == APE_COPIED) memset(memory[p], 0, mine->bytes);
      continue;
    }
    int before = 0;  // receives of the same queue that this rank has posted
    for (int q = 0; q < p; ++q)
      before += !posts[rank][q].is_send && is_same_queue(mine, &messages[posts[rank][q].message]);
    got[p] = -1;
    for (int q = 0; q < totals[mine->from] && got[p] < 0; ++q) {
      const struct post sent = posts[mine->from][q];
      if (sent.is_send && is_same_queue(mine, &messages[sent.message]) && before-- == 0)
        got[p] = sent.message;
    }
    memory[p] = malloc(mine->room + 1);
    memset(memory[p], 0xee, mine->room + 1);
    CALL(ape_irecv(memory[p], mine->room, mine->from, mine->tag, mine->receive_how, &requests[p]));
  }
  // Each rank ends its requests in its own way.
  uint64_t way = (state >> (8 * (rank % 8))) % 4;
  int left = totals[rank];
  while (left > 0) {
    int which = -1;
    size_t received = 0;
    int code = APE_OK;
    if (way == 0) {
      which = totals[rank] - left;
      code = ape_wait(&requests[which], &received);
    } else if (way == 1) {
      code = ape_wait_any(totals[rank], requests, &which, &received);
    } else if (way == 2) {
      while (code == APE_OK && which < 0) code = ape_test_any(totals[rank], requests, &which, &received);
    } else {
      int done = 0;
      for (which = 0; requests[which] == APE_NO_REQUEST; ++which) continue;
      while (code == APE_OK && !done) code = ape_test(&requests[which], &done, &received);
    }
    EXPECT(which >= 0 && requests[which] == APE_NO_REQUEST);
    --left;
    const struct message* mine = &messages[posts[rank][which].message];
    if (posts[rank][which].is_send) {
      EXPECT(code == APE_OK);
      continue;
    }
    const struct message* sent = &messages[got[which]];
    const size_t expected = sent->bytes < mine->room ? sent->bytes : mine->room;
    EXPECT(code == (sent->bytes > mine->room ? APE_ERR_TRUNCATED : APE_OK));
    EXPECT(received == expected);
    for (size_t i = 0; i < expected; ++i) EXPECT(memory[which][i] == byte_of(sent->data, i));
    for (size_t i = expected; i <= mine->room; ++i) EXPECT(memory[which][i] == 0xee);
  }
  for (int p = 0; p < totals[rank]; ++p) free(memory[p]);
}

static void combine(void) {
  const int root = (int)draw((uint64_t)size);
  int64_t values[3] = {rank, (int64_t)draw(1000), -rank};
  const int64_t second = values[1];
  switch (draw(5)) {
    case 0:
      CALL(ape_sum(values, 3, APE_INT64));
      EXPECT(values[0] == size * (size - 1) / 2 && values[1] == size * second);
      break;
    case 1:
      CALL(ape_max(values, 3, APE_INT64));
      EXPECT(values[0] == size - 1 && values[2] == 0);
      break;
    case 2:
      values[0] = rank == root ? second : -1;
      CALL(ape_broadcast(values, sizeof *values, root));
      EXPECT(values[0] == second);
      break;
    case 3: {
      int64_t all[MOST_RANKS] = {0};
      CALL(ape_gather(values, sizeof *values, all, root));
      for (int i = 0; rank == root && i < size; ++i) EXPECT(all[i] == i);
      break;
    }
    default:
      CALL(ape_barrier());
  }
}

static void exchange_halo(ape_halo halo, double* out, const double* in) {
  const double round = (double)draw(100000);
  for (int d = 0; d < 6; ++d) out[d] = round + 10 * rank + d;
  CALL(ape_halo_start(halo));
  CALL(ape_halo_wait(halo));
  for (int d = 0; d < 6; ++d) {
    int neighbor = 0;
    CALL(ape_neighbor(d, &neighbor));
    EXPECT(in[d] == round + 10 * neighbor + (d ^ 1));
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  state = strtoull(argv[1], NULL, 10);
  const long sequences = strtol(argv[2], NULL, 10);
  CALL(ape_init());
  CALL(ape_rank(&rank));
  CALL(ape_size(&size));
  EXPECT(size <= MOST_RANKS);
  double out[6];
  double in[6];
  ape_halo halo = APE_NO_HALO;
  CALL(ape_halo_create(&halo));
  for (int d = 0; d < 6; ++d) CALL(ape_halo_face(halo, d, &out[d], &in[d], sizeof *out));
  for (long i = 0; i < sequences; ++i) {
    switch (draw(6)) {
      case 0:
        combine();
        break;
      case 1:
        exchange_halo(halo, out, in);
        break;
      default:
        exchange_messages();
    }
  }
  CALL(ape_halo_free(&halo));
  CALL(ape_finalize());
  if (rank == 0) printf("%ld sequences agree\n", sequences);
  return 0;
}
