/* Each call of apenet_am.h, checked against what must be in memory. Prints "passed" on rank 0, or says what
 * is wrong and ends with status 1. */
#include <apenet_am.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                         \
  do {                                                                                           \
    if (!(condition)) {                                                                          \
      fprintf(stderr, "rank %u: %s:%d: %s\n", apenet_am_rank(), __FILE__, __LINE__, #condition); \
      apenet_am_exit(1);                                                                         \
    }                                                                                            \
  } while (0)

enum {
  short_request = 1,
  medium_request = 64,
  long_request = 255,
  reply = 2,
  data_reply = 3,
  payload_bytes = 3000
};

static struct apenet_am_segment segments[8];
static char pattern[payload_bytes];
static int replies;

static void serve_short(void* token, int32_t first, int32_t second) {
  CHECK(first == -1 && second == 7);
  const int32_t answer = 9;
  CHECK(apenet_am_reply_short(token, reply, &answer, 1) == APENET_AM_OK);
}

static void serve_medium(void* token, void* payload, size_t bytes) {
  CHECK(bytes == payload_bytes && memcmp(payload, pattern, bytes) == 0);
  CHECK(apenet_am_reply_medium(token, data_reply, payload, bytes, NULL, 0) == APENET_AM_OK);
}

static void serve_long(void* token, void* payload, size_t bytes, int32_t sender) {
  CHECK(payload == segments[apenet_am_rank()].address && memcmp(payload, pattern, bytes) == 0);
  CHECK(apenet_am_source(token) == (uint32_t)sender);
  char* const there = (char*)segments[sender].address + payload_bytes;
  CHECK(apenet_am_reply_long(token, data_reply, payload, bytes, there, NULL, 0) == APENET_AM_OK);
}

static void take_reply(void* token, int32_t answer) {
  (void)token;
  CHECK(answer == 9);
  ++replies;
}

static void take_data(void* token, void* payload, size_t bytes) {
  (void)token;
  CHECK(bytes == payload_bytes && memcmp(payload, pattern, bytes) == 0);
  ++replies;
}

static void await_replies(int wanted) {
  while (replies < wanted) wanted % 2 ? apenet_am_poll() : apenet_am_wait();
}

int main(int argc, char** argv) {
  (void)argv;
  void (*handlers[APENET_AM_HANDLERS])(void) = {NULL};
  handlers[short_request] = (void (*)(void))serve_short;
  handlers[medium_request] = (void (*)(void))serve_medium;
  handlers[long_request] = (void (*)(void))serve_long;
  handlers[reply] = (void (*)(void))take_reply;
  handlers[data_reply] = (void (*)(void))take_data;
  for (int i = 0; i < payload_bytes; ++i) pattern[i] = (char)(i * 31);
  CHECK(apenet_am_init(argc > 1) == APENET_AM_OK);
  CHECK(apenet_am_init(0) != APENET_AM_OK);
  const uint32_t rank = apenet_am_rank();
  const uint32_t next = (rank + 1) % apenet_am_count();
  CHECK(apenet_am_first_on_node(rank) <= rank);
  CHECK(apenet_am_attach(handlers, apenet_am_max_segment() + 1, segments) == APENET_AM_BAD_ARGUMENT);
  CHECK(apenet_am_attach(handlers, 65536, segments) == APENET_AM_OK);
  CHECK(apenet_am_attach(handlers, 65536, segments) == APENET_AM_BAD_ARGUMENT);
  CHECK(segments[next].bytes == 65536);
  const int32_t words[] = {-1, 7};
  const int32_t sender = (int32_t)rank;
  CHECK(apenet_am_request_short(next, short_request, words, 2) == APENET_AM_OK);
  CHECK(apenet_am_request_medium(next, medium_request, pattern, payload_bytes, NULL, 0) == APENET_AM_OK);
  CHECK(apenet_am_request_long(next, long_request, pattern, payload_bytes, segments[next].address, &sender,
                               1) == APENET_AM_OK);
  await_replies(3);
  CHECK(apenet_am_request_short(apenet_am_count(), short_request, words, 2) == APENET_AM_BAD_ARGUMENT);
  CHECK(apenet_am_request_short(next, 0, words, 2) == APENET_AM_BAD_ARGUMENT);
  CHECK(apenet_am_request_short(next, short_request, words, 17) == APENET_AM_BAD_ARGUMENT);
  CHECK(apenet_am_request_medium(next, medium_request, pattern, APENET_AM_MAX_MEDIUM + 1, NULL, 0) ==
        APENET_AM_BAD_ARGUMENT);
  CHECK(apenet_am_request_long(next, long_request, pattern, apenet_am_max_long() + 1, segments[next].address,
                               NULL, 0) == APENET_AM_BAD_ARGUMENT);
  CHECK(apenet_am_request_long(next, long_request, pattern, 2, (char*)segments[next].address + 65535, NULL,
                               0) == APENET_AM_BAD_ARGUMENT);
  apenet_am_barrier();
  apenet_am_barrier();
  if (rank == 0) puts("passed");
  apenet_am_exit(0);
}
