/* Random legal calls of ape_rdma.h from a seed, checked against a model in memory.
 *
 * A lane is a writer, a target and a queue. It has its own part of the target's published buffer, and the
 * writer keeps a copy of what must be there. Messages and announced puts of a lane are numbered and must come
 * in order. A sequence publishes the buffers, posts at random, compares all parts by gets, unpublishes, and
 * puts into what no longer is. */
#include <ape_rdma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  most_ranks = 16,
  most_queues = 4,
  most_posts = 24,
  most_part_bytes = 70000,
  post_bytes = 2 * most_part_bytes
};
enum { name_cookie = 1, end_cookie, message_cookie, put_cookie, get_cookie, stale_cookie };

struct Post {
  uint64_t cookie;
  int owed[APE_RDMA_REFUSED + 1]; /* events that must still come, by kind */
  ape_rdma_status status;         /* status of all events but TX_DONE */
  int target, queue;
  size_t bytes;
  ape_rdma_segment list[3];
  int count;
  const unsigned char* wanted; /* what a get reads */
};

static ape_rdma_port* port;
static int rank, size, card_queues;
static int queues;          /* number in this sequence */
static uint64_t part_bytes; /* what a rank may write of another by a queue */
static ape_rdma_address addresses[most_ranks];
static ape_rdma_buffer names[most_ranks];
static unsigned char *memory, *outgoing, *scratch;
static struct Post posts[most_posts];
static int post_count;
static int first_slot;                                       /* slot of the posts' memory in `outgoing` */
static unsigned char (*model)[most_queues][most_part_bytes]; /* by target: what this rank has put there */
static uint64_t sent[most_ranks][most_queues];               /* numbered messages to a target */
static uint64_t taken[most_ranks][most_queues];              /* and from a source */
static uint64_t announced[most_ranks][most_queues];          /* as the source says at its ends */
static long name_count, end_count, checks;
static uint64_t seed, random_state;

static uint64_t mix(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}
static uint64_t draw(uint64_t bound) {
  return mix(random_state += 0x9e3779b97f4a7c15u) % bound;
}

#define FAIL(...)                                                                 \
  (fprintf(stderr, "fuzz: seed %llu, rank %d: ", (unsigned long long)seed, rank), \
   fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(1))

static void check(ape_rdma_status status, const char* call) {
  if (status != APE_RDMA_OK) FAIL("%s: %s", call, ape_rdma_strerror(status));
}

/* What a cookie says: its kind, the lane, the number on it or that of the post, and the bytes. */
static uint64_t cookie_of(int kind, int target, int queue, uint64_t number, size_t bytes) {
  return (uint64_t)kind | (uint64_t)queue << 4 | (uint64_t)target << 8 | number << 16 | (uint64_t)bytes << 40;
}
static int kind_of(uint64_t cookie) {
  return (int)(cookie & 15);
}
static int queue_of(uint64_t cookie) {
  return (int)(cookie >> 4 & 15);
}
static uint64_t number_of(uint64_t cookie) {
  return cookie >> 16 & 0xffffff;
}
static size_t bytes_of(uint64_t cookie) {
  return (size_t)(cookie >> 40);
}

static unsigned char byte_of(int source, uint64_t cookie, size_t at) {
  return (unsigned char)(mix(cookie ^ (uint64_t)source << 50) + at * 7 + (at >> 8));
}

static int rank_of(ape_rdma_address address) {
  for (int i = 0; i < size; ++i) {
    if (addresses[i].node == address.node && addresses[i].port == address.port) return i;
  }
  FAIL("an event from nobody");
}

static void take_arrival(const ape_rdma_event* event) {
  const int source = rank_of(event->source), kind = kind_of(event->cookie), queue = queue_of(event->cookie);
  const size_t bytes = bytes_of(event->cookie);
  if (event->status != APE_RDMA_OK) FAIL("an arrival that was refused");
  if (kind == name_cookie) {
    check(ape_rdma_read_message(port, &names[source], sizeof names[source]), "ape_rdma_read_message");
    ++name_count;
    return;
  }
  if (kind == end_cookie) {
    check(ape_rdma_read_message(port, announced[source], sizeof announced[source]), "ape_rdma_read_message");
    ++end_count;
    return;
  }
  if (number_of(event->cookie) != taken[source][queue]++)
    FAIL("number %llu of rank %d, queue %d, is out of order", (unsigned long long)number_of(event->cookie),
         source, queue);
  if (kind == put_cookie) {
    const uint64_t offset = event->buffer - names[rank];
    if (event->buffer != names[rank] && offset >= (uint64_t)size * (uint64_t)queues * part_bytes)
      FAIL("a put into another buffer");
    return;
  }
  if (kind != message_cookie || event->buffer != 0 || event->bytes != bytes)
    FAIL("a message of another size or kind");
  check(ape_rdma_read_message(port, scratch, post_bytes), "ape_rdma_read_message");
  for (size_t i = 0; i < bytes; ++i) {
    if (scratch[i] != byte_of(source, event->cookie, i)) FAIL("a message is wrong at byte %zu", i);
  }
  ++checks;
}

/* Pieces lie behind each other in `begin`, 16 bytes apart. */
static void make_list(struct Post* post, unsigned char* begin) {
  post->count = 1 + (int)draw(3);
  size_t done = 0;
  for (int i = 0; i < post->count; ++i) {
    const size_t length = i + 1 == post->count ? post->bytes - done : draw(post->bytes - done + 1);
    post->list[i] = (ape_rdma_segment){begin + done + 16 * (size_t)i, length};
    done += length;
  }
}

static void compare_get(const struct Post* post) {
  size_t done = 0;
  for (int i = 0; i < post->count; ++i) {
    if (memcmp(post->list[i].memory, post->wanted + done, post->list[i].bytes) != 0)
      FAIL("a get from rank %d, queue %d, brings other bytes", post->target, post->queue);
    done += post->list[i].bytes;
  }
  ++checks;
}

static void take(const ape_rdma_event* event) {
  if (event->kind == APE_RDMA_RX_DONE) {
    take_arrival(event);
    return;
  }
  for (int i = 0; i < post_count; ++i) {
    struct Post* post = &posts[i];
    if (post->cookie != event->cookie) continue;
    if (post->owed[event->kind]-- <= 0) FAIL("an event of kind %d too many", event->kind);
    const ape_rdma_status wanted = event->kind == APE_RDMA_TX_DONE ? APE_RDMA_OK : post->status;
    if (event->status != wanted) FAIL("kind %d: status %s", event->kind, ape_rdma_strerror(event->status));
    if (event->kind == APE_RDMA_GET_DONE && wanted == APE_RDMA_OK) compare_get(post);
    return;
  }
  FAIL("an event of kind %d of no post", event->kind);
}

static void wait_one(void) {
  ape_rdma_event event;
  check(ape_rdma_wait(port, &event), "ape_rdma_wait");
  take(&event);
}

static int is_owed(int kind) {
  for (int i = 0; i < post_count; ++i) {
    if (posts[i].owed[kind] > 0) return 1;
  }
  return 0;
}
static void drain(void) {
  while (is_owed(APE_RDMA_TX_DONE) || is_owed(APE_RDMA_GET_DONE) || is_owed(APE_RDMA_PUT_DELIVERED) ||
         is_owed(APE_RDMA_REFUSED))
    wait_one();
}

static struct Post* new_post(int kind, size_t bytes, int target, int queue) {
  struct Post* post = &posts[post_count];
  memset(post, 0, sizeof *post);
  post->target = target;
  post->queue = queue;
  post->bytes = bytes;
  const int is_numbered = kind == message_cookie;
  post->cookie =
      cookie_of(kind, target, queue, is_numbered ? sent[target][queue]++ : (uint64_t)post_count, bytes);
  make_list(post, outgoing + (size_t)(first_slot + post_count++) * post_bytes);
  return post;
}

/* Fills the pieces of a list, and returns where the next byte would be. */
static void fill(const struct Post* post, unsigned char* copy) {
  size_t at = 0;
  for (int i = 0; i < post->count; ++i) {
    unsigned char* piece = post->list[i].memory;
    for (size_t k = 0; k < post->list[i].bytes; ++k, ++at) {
      piece[k] = byte_of(rank, post->cookie, at);
      if (copy != NULL) copy[at] = piece[k];
    }
  }
}

static size_t offset_of_part(int writer, int queue) {
  return (size_t)(writer * queues + queue) * part_bytes;
}
static size_t draw_bytes(size_t most) {
  const uint64_t way = draw(8);
  return way == 0 ? 0 : way == 1 ? draw(most + 1) : draw(600);
}

static void send_one(int target, int queue) {
  size_t most = 0;
  check(ape_rdma_max_send_bytes(port, &most), "ape_rdma_max_send_bytes");
  if (most > part_bytes) most = part_bytes;
  struct Post* post = new_post(message_cookie, draw_bytes(most), target, queue);
  fill(post, NULL);
  const unsigned flags = draw(2) ? APE_RDMA_SIGNAL : 0;
  post->owed[APE_RDMA_TX_DONE] = flags != 0;
  check(ape_rdma_post_send(port, addresses[target], queue, post->list, post->count, flags, post->cookie),
        "ape_rdma_post_send");
}

static void put_one(int target, int queue) {
  const size_t bytes = draw_bytes(part_bytes), at = draw(part_bytes - bytes + 1);
  unsigned flags = (draw(2) ? APE_RDMA_SIGNAL : 0) | (draw(2) ? APE_RDMA_DELIVERED : 0);
  struct Post* post = new_post(stale_cookie, bytes, target, queue);
  /* A cookie of an announced put has its number on the lane. */
  if (draw(2)) {
    flags |= APE_RDMA_NOTIFY;
    post->cookie = cookie_of(put_cookie, target, queue, sent[target][queue]++, bytes);
  }
  fill(post, &model[target][queue][at]);
  post->owed[APE_RDMA_TX_DONE] = (flags & APE_RDMA_SIGNAL) != 0;
  post->owed[APE_RDMA_PUT_DELIVERED] = (flags & APE_RDMA_DELIVERED) != 0;
  check(ape_rdma_post_put(port, addresses[target], queue, post->list, post->count, names[target],
                          offset_of_part(rank, queue) + at, flags, post->cookie),
        "ape_rdma_post_put");
}

/* Reads what this rank has put there before, on the same queue. */
static void get_one(int target, int queue, size_t at, size_t bytes) {
  struct Post* post = new_post(get_cookie, bytes, target, queue);
  post->owed[APE_RDMA_GET_DONE] = 1;
  post->wanted = &model[target][queue][at];
  check(ape_rdma_post_get(port, addresses[target], queue, post->list, post->count, names[target],
                          offset_of_part(rank, queue) + at, post->cookie),
        "ape_rdma_post_get");
}

/* A put or get that the target must refuse: behind the end of its buffer, or of one that does not exist. */
static void ask_too_much(int target, int queue, ape_rdma_status wanted) {
  const size_t end = (size_t)(size * queues) * part_bytes;
  struct Post* post = new_post(stale_cookie, 1 + draw(100), target, queue);
  post->status = wanted;
  post->count = 1;
  post->list[0].bytes = post->bytes;
  const size_t offset = wanted == APE_RDMA_OUT_OF_BOUNDS ? end - post->bytes + 1 + draw(1000) : draw(end / 2);
  const uint64_t way = draw(3);
  const unsigned flags = way == 1 ? APE_RDMA_DELIVERED : APE_RDMA_NOTIFY;
  post->owed[way == 0 ? APE_RDMA_GET_DONE : way == 1 ? APE_RDMA_PUT_DELIVERED : APE_RDMA_REFUSED] = 1;
  check(way == 0 ? ape_rdma_post_get(port, addresses[target], queue, post->list, 1, names[target], offset,
                                     post->cookie)
                 : ape_rdma_post_put(port, addresses[target], queue, post->list, 1, names[target], offset,
                                     flags, post->cookie),
        "a post that is refused");
}

/* Everybody tells everybody. */
static void tell(int kind, const void* what, size_t bytes, int step) {
  unsigned char* begin = outgoing + 2 * most_posts * (size_t)post_bytes;
  for (int target = 0; target < size; ++target) {
    const void* part = kind == end_cookie ? (const char*)what + (size_t)target * bytes : what;
    memcpy(begin, part, bytes);
    const ape_rdma_segment said = {begin, bytes};
    check(ape_rdma_post_send(port, addresses[target], 0, &said, 1, 0, cookie_of(kind, target, 0, 0, bytes)),
          "tell");
  }
  long* count = kind == name_cookie ? &name_count : &end_count;
  while (*count < (long)step * size) wait_one();
}

static void random_posts(void) {
  ape_rdma_event event;
  const int many = 1 + (int)draw(1 + draw(1 + draw(most_posts - 5)));
  while (post_count < many) {
    const int target = (int)draw((uint64_t)size), queue = (int)draw((uint64_t)queues);
    switch (draw(8)) {
      case 0:
      case 1:
        send_one(target, queue);
        break;
      case 2:
      case 3:
        put_one(target, queue);
        break;
      case 4: {
        const size_t bytes = draw_bytes(part_bytes);
        get_one(target, queue, draw(part_bytes - bytes + 1), bytes);
        /* A later put of the lane might overtake the answer. */
        drain();
        break;
      }
      case 5:
        if (draw(4) == 0) ask_too_much(target, queue, APE_RDMA_OUT_OF_BOUNDS);
        break;
      case 6:
        if (is_owed(APE_RDMA_TX_DONE) || is_owed(APE_RDMA_PUT_DELIVERED)) wait_one();
        break;
      default: {
        const ape_rdma_status status =
            draw(2) ? ape_rdma_poll(port, &event) : ape_rdma_wait_for(port, (double)draw(20), &event);
        if (status == APE_RDMA_OK)
          take(&event);
        else if (status != APE_RDMA_NOT_YET)
          check(status, "ape_rdma_poll");
      }
    }
  }
}

static int numbers_are_taken(void) {
  return memcmp(taken, announced, sizeof taken) == 0;
}

static void run_sequence(int number) {
  /* Mostly few posts, queues and bytes, so that a run has many sequences. */
  random_state = mix(seed);
  part_bytes = draw(100) == 0 ? most_part_bytes : 700;
  queues = 1 + (int)draw(draw((uint64_t)card_queues) + 1);
  random_state ^= (uint64_t)rank;
  const size_t room = (size_t)(size * queues) * part_bytes;
  memset(memory, 0, room);
  for (int target = 0; target < size; ++target) {
    for (int queue = 0; queue < queues; ++queue) memset(model[target][queue], 0, part_bytes);
  }
  check(ape_rdma_publish(port, memory, room, &names[rank]), "ape_rdma_publish");
  const ape_rdma_buffer own = names[rank];
  post_count = first_slot = 0;
  tell(name_cookie, &own, sizeof own, number + 1);
  random_posts();
  drain();
  tell(end_cookie, sent, sizeof sent[0], 3 * number + 1);
  while (!numbers_are_taken()) wait_one();
  /* The card may still read the memory of puts without an event, until a get behind them has been answered.
   */
  first_slot = most_posts;
  post_count = 0;
  for (int target = 0; target < size; ++target) {
    for (int queue = 0; queue < queues; ++queue) {
      if (post_count + 1 == most_posts) drain(), post_count = 0;
      get_one(target, queue, 0, part_bytes);
    }
  }
  drain();
  tell(end_cookie, sent, sizeof sent[0], 3 * number + 2);
  check(ape_rdma_unpublish(port, own), "ape_rdma_unpublish");
  /* The others must have unpublished, too. */
  double now_us = 0, begin_us = 0;
  check(ape_rdma_time_us(port, &begin_us), "ape_rdma_time_us");
  post_count = 0;
  ask_too_much(rank, 0, APE_RDMA_BAD_BUFFER);
  drain();
  check(ape_rdma_time_us(port, &now_us), "ape_rdma_time_us");
  if (now_us < begin_us) FAIL("time went back");
  tell(end_cookie, sent, sizeof sent[0], 3 * number + 3);
}

int main(int argc, char** argv) {
  const uint64_t first_seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  const int sequences = argc > 2 ? atoi(argv[2]) : 1;
  check(ape_rdma_open(APE_RDMA_ANY_PORT, &port), "ape_rdma_open");
  check(ape_rdma_rank(port, &rank, &size), "ape_rdma_rank");
  check(ape_rdma_queues(port, &card_queues), "ape_rdma_queues");
  if (card_queues > most_queues) card_queues = most_queues;
  if (size > most_ranks) FAIL("too many ranks");
  for (int i = 0; i < size; ++i)
    check(ape_rdma_address_of_rank(port, i, &addresses[i]), "ape_rdma_address_of_rank");
  const size_t room = (size_t)(size * card_queues) * most_part_bytes,
               out_bytes = (2 * most_posts + 1) * (size_t)post_bytes;
  memory = malloc(room);
  outgoing = malloc(out_bytes);
  scratch = malloc(post_bytes);
  model = malloc((size_t)size * sizeof *model);
  check(ape_rdma_register(port, memory, room), "ape_rdma_register");
  check(ape_rdma_register(port, outgoing, out_bytes), "ape_rdma_register");
  for (int i = 0; i < sequences; ++i) {
    seed = first_seed + (uint64_t)i;
    run_sequence(i);
  }
  check(ape_rdma_close(port), "ape_rdma_close");
  printf("rank %d: %ld checks\n", rank, checks);
  return 0;
}
