/* Every call of GASNet-1, checked against what must be in memory. Prints "passed" on node 0, or says what is
 * wrong and ends with status 1. */
#include <gasnet.h>
#include <gasnet_coll.h>
#include <string.h>

#define SEGMENT_BYTES ((uintptr_t)4 << 20)
#define CHECK(condition)                                                                        \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      fprintf(stderr, "node %u: %s:%d: %s\n", gasnet_mynode(), __FILE__, __LINE__, #condition); \
      gasnet_exit(1);                                                                           \
    }                                                                                           \
  } while (0)
#define ARGS_0
#define ARGS_1 7
#define ARGS_2 ARGS_1, 14
#define ARGS_3 ARGS_2, 21
#define ARGS_4 ARGS_3, 28
#define ARGS_5 ARGS_4, 35
#define ARGS_6 ARGS_5, 42
#define ARGS_7 ARGS_6, 49
#define ARGS_8 ARGS_7, 56
#define ARGS_9 ARGS_8, 63
#define ARGS_10 ARGS_9, 70
#define ARGS_11 ARGS_10, 77
#define ARGS_12 ARGS_11, 84
#define ARGS_13 ARGS_12, 91
#define ARGS_14 ARGS_13, 98
#define ARGS_15 ARGS_14, 105
#define ARGS_16 ARGS_15, INT32_MIN
#define COMMA_0
#define COMMA_N ,

typedef gasnet_handlerarg_t arg;

static gasnet_node_t me, count, next;
static gasnet_seginfo_t* segments;
static char pattern[1 << 16];
static volatile int requests, replies;
static gasnet_hsl_t lock = GASNET_HSL_INITIALIZER;

static void await_replies(int wanted) {
  GASNET_BLOCKUNTIL(replies == wanted);
}

static void check_source(gasnet_token_t token) {
  gasnet_node_t source = count;
  CHECK(gasnet_AMGetMsgSource(token, &source) == GASNET_OK);
  CHECK(source < count);
}

static void check_arguments(int n, const arg* given) {
  for (int i = 0; i < n; ++i) CHECK(given[i] == (i == 15 ? INT32_MIN : 7 * (i + 1)));
}

/* One handler of each kind for each number of arguments: 0 + n short, 32 + n medium, 64 + n long requests;
 * their replies are 16 numbers higher, with n from 0 to 16 spread over two rows of the table below. */
#define PARAMETERS_0
#define PARAMETERS_1 , arg a0
#define PARAMETERS_2 PARAMETERS_1, arg a1
#define PARAMETERS_3 PARAMETERS_2, arg a2
#define PARAMETERS_4 PARAMETERS_3, arg a3
#define PARAMETERS_5 PARAMETERS_4, arg a4
#define PARAMETERS_6 PARAMETERS_5, arg a5
#define PARAMETERS_7 PARAMETERS_6, arg a6
#define PARAMETERS_8 PARAMETERS_7, arg a7
#define PARAMETERS_9 PARAMETERS_8, arg a8
#define PARAMETERS_10 PARAMETERS_9, arg a9
#define PARAMETERS_11 PARAMETERS_10, arg a10
#define PARAMETERS_12 PARAMETERS_11, arg a11
#define PARAMETERS_13 PARAMETERS_12, arg a12
#define PARAMETERS_14 PARAMETERS_13, arg a13
#define PARAMETERS_15 PARAMETERS_14, arg a14
#define PARAMETERS_16 PARAMETERS_15, arg a15
#define LIST_0 0
#define LIST_1 a0
#define LIST_2 LIST_1, a1
#define LIST_3 LIST_2, a2
#define LIST_4 LIST_3, a3
#define LIST_5 LIST_4, a4
#define LIST_6 LIST_5, a5
#define LIST_7 LIST_6, a6
#define LIST_8 LIST_7, a7
#define LIST_9 LIST_8, a8
#define LIST_10 LIST_9, a9
#define LIST_11 LIST_10, a10
#define LIST_12 LIST_11, a11
#define LIST_13 LIST_12, a12
#define LIST_14 LIST_13, a13
#define LIST_15 LIST_14, a14
#define LIST_16 LIST_15, a15

enum {
  SHORT = 128,
  MEDIUM = 145,
  LONG = 162,
  SHORT_DONE = 179,
  MEDIUM_DONE = 196,
  LONG_DONE = 213,
  COUNTED = 230,
  ECHO,
  ADDRESS
};

static void check_payload(const char* payload, size_t bytes) {
  CHECK(memcmp(payload, pattern, bytes) == 0);
}

#define HANDLERS(n, COMMA, ...)                                                                         \
  static void short_done_##n(gasnet_token_t token PARAMETERS_##n) {                                     \
    const arg given[] = {LIST_##n};                                                                     \
    check_source(token);                                                                                \
    check_arguments(n, given);                                                                          \
    ++replies;                                                                                          \
  }                                                                                                     \
  static void medium_done_##n(gasnet_token_t token, void* payload, size_t bytes PARAMETERS_##n) {       \
    const arg given[] = {LIST_##n};                                                                     \
    check_source(token);                                                                                \
    check_arguments(n, given);                                                                          \
    check_payload(payload, bytes);                                                                      \
    ++replies;                                                                                          \
  }                                                                                                     \
  static void long_done_##n(gasnet_token_t token, void* payload, size_t bytes PARAMETERS_##n) {         \
    CHECK(payload == (char*)segments[me].addr + 1000);                                                  \
    medium_done_##n(token, payload, bytes COMMA LIST_##n##_GIVEN);                                      \
  }                                                                                                     \
  static void short_##n(gasnet_token_t token PARAMETERS_##n) {                                          \
    const arg given[] = {LIST_##n};                                                                     \
    check_arguments(n, given);                                                                          \
    GASNET_SAFE(gasnet_AMReplyShort##n(token, SHORT_DONE + n COMMA __VA_ARGS__));                       \
  }                                                                                                     \
  static void medium_##n(gasnet_token_t token, void* payload, size_t bytes PARAMETERS_##n) {            \
    const arg given[] = {LIST_##n};                                                                     \
    check_arguments(n, given);                                                                          \
    check_payload(payload, bytes);                                                                      \
    GASNET_SAFE(gasnet_AMReplyMedium##n(token, MEDIUM_DONE + n, payload, bytes COMMA __VA_ARGS__));     \
  }                                                                                                     \
  static void long_##n(gasnet_token_t token, void* payload, size_t bytes PARAMETERS_##n) {              \
    gasnet_node_t source;                                                                               \
    const arg given[] = {LIST_##n};                                                                     \
    check_arguments(n, given);                                                                          \
    check_payload(payload, bytes);                                                                      \
    CHECK(gasnet_AMGetMsgSource(token, &source) == GASNET_OK);                                          \
    GASNET_SAFE(gasnet_AMReplyLong##n(token, LONG_DONE + n, payload, bytes,                             \
                                      (char*)segments[source].addr + 1000 COMMA __VA_ARGS__));          \
  }                                                                                                     \
  static void send_##n(size_t bytes) {                                                                  \
    char* const there = (char*)segments[next].addr + 200000;                                            \
    replies = 0;                                                                                        \
    GASNET_SAFE(gasnet_AMRequestShort##n(next, SHORT + n COMMA __VA_ARGS__));                           \
    GASNET_SAFE(gasnet_AMRequestMedium##n(next, MEDIUM + n, pattern, bytes % 8193 COMMA __VA_ARGS__));  \
    if (bytes > gasnet_AMMaxLongRequest()) bytes = gasnet_AMMaxLongRequest();                           \
    GASNET_SAFE(gasnet_AMRequestLong##n(next, LONG + n, pattern, bytes, there COMMA __VA_ARGS__));      \
    await_replies(3);                                                                                   \
    GASNET_SAFE(gasnet_AMRequestLongAsync##n(next, LONG + n, pattern, bytes, there COMMA __VA_ARGS__)); \
    await_replies(4);                                                                                   \
  }
#define LIST_0_GIVEN
#define LIST_1_GIVEN LIST_1
#define LIST_2_GIVEN LIST_2
#define LIST_3_GIVEN LIST_3
#define LIST_4_GIVEN LIST_4
#define LIST_5_GIVEN LIST_5
#define LIST_6_GIVEN LIST_6
#define LIST_7_GIVEN LIST_7
#define LIST_8_GIVEN LIST_8
#define LIST_9_GIVEN LIST_9
#define LIST_10_GIVEN LIST_10
#define LIST_11_GIVEN LIST_11
#define LIST_12_GIVEN LIST_12
#define LIST_13_GIVEN LIST_13
#define LIST_14_GIVEN LIST_14
#define LIST_15_GIVEN LIST_15
#define LIST_16_GIVEN LIST_16
HANDLERS(0, COMMA_0)
HANDLERS(1, COMMA_N, ARGS_1)
HANDLERS(2, COMMA_N, ARGS_2)
HANDLERS(3, COMMA_N, ARGS_3)
HANDLERS(4, COMMA_N, ARGS_4)
HANDLERS(5, COMMA_N, ARGS_5)
HANDLERS(6, COMMA_N, ARGS_6)
HANDLERS(7, COMMA_N, ARGS_7)
HANDLERS(8, COMMA_N, ARGS_8)
HANDLERS(9, COMMA_N, ARGS_9)
HANDLERS(10, COMMA_N, ARGS_10)
HANDLERS(11, COMMA_N, ARGS_11)
HANDLERS(12, COMMA_N, ARGS_12)
HANDLERS(13, COMMA_N, ARGS_13)
HANDLERS(14, COMMA_N, ARGS_14)
HANDLERS(15, COMMA_N, ARGS_15)
HANDLERS(16, COMMA_N, ARGS_16)

static void counted(gasnet_token_t token, arg amount) {
  (void)token;
  gasnet_hsl_lock(&lock);
  requests += amount;
  gasnet_hsl_unlock(&lock);
}

static void echo(gasnet_token_t token, arg amount) {
  GASNET_SAFE(gasnet_AMReplyShort1(token, COUNTED, amount));
}

static void take_address(gasnet_token_t token, arg high, arg low) {
  gasnet_node_t source = 0;
  CHECK(gasnet_AMGetMsgSource(token, &source) == GASNET_OK);
  segments[source].addr = (void*)((uintptr_t)(uint32_t)high << 32 | (uint32_t)low);
  ++requests;
}

#define ENTRIES(n)                                                                    \
  {SHORT + n, (void (*)())short_##n}, {MEDIUM + n, (void (*)())medium_##n},           \
      {LONG + n, (void (*)())long_##n}, {SHORT_DONE + n, (void (*)())short_done_##n}, \
      {MEDIUM_DONE + n, (void (*)())medium_done_##n}, {                               \
    LONG_DONE + n, (void (*)())long_done_##n                                          \
  }
static gasnet_handlerentry_t table[] = {ENTRIES(0),
                                        ENTRIES(1),
                                        ENTRIES(2),
                                        ENTRIES(3),
                                        ENTRIES(4),
                                        ENTRIES(5),
                                        ENTRIES(6),
                                        ENTRIES(7),
                                        ENTRIES(8),
                                        ENTRIES(9),
                                        ENTRIES(10),
                                        ENTRIES(11),
                                        ENTRIES(12),
                                        ENTRIES(13),
                                        ENTRIES(14),
                                        ENTRIES(15),
                                        ENTRIES(16),
                                        {COUNTED, (void (*)())counted},
                                        {ECHO, (void (*)())echo},
                                        {ADDRESS, (void (*)())take_address},
                                        {0, (void (*)())counted}};
enum { TABLE_SIZE = sizeof table / sizeof table[0] };

static void barrier(void) {
  gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
  CHECK(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) == GASNET_OK);
}

#ifdef GASNET_SEGMENT_EVERYTHING
enum { LEAST_LONG = 8192, ACCESS_SIZES = 11 }; /* the largest one is 20,000 messages */

static void check_segment(const gasnet_seginfo_t* segment) {
  CHECK(segment->size == UINTPTR_MAX && segment->addr == NULL);
}

/* Where the checks below take the segments of the other configuration: in memory of the program. */
static void share_memory(void) {
  static char memory[SEGMENT_BYTES];
  requests = 0;
  barrier();
  for (gasnet_node_t to = 0; to < count; ++to)
    GASNET_SAFE(gasnet_AMRequestShort2(to, ADDRESS, (arg)((uintptr_t)memory >> 32), (arg)(uintptr_t)memory));
  GASNET_BLOCKUNTIL(requests == (int)count);
  barrier();
}

static void test_segment(void) {
  CHECK(gasnet_getMaxLocalSegmentSize() == UINTPTR_MAX && gasnet_getMaxGlobalSegmentSize() == UINTPTR_MAX);
}

static void test_out_of_segment(void) {}
#else
enum { LEAST_LONG = 65536, ACCESS_SIZES = 12 };

static void check_segment(const gasnet_seginfo_t* segment) {
  CHECK(segment->size == SEGMENT_BYTES && segment->addr != NULL);
}

static void share_memory(void) {}

static void test_segment(void) {
  CHECK(gasnet_attach(table, TABLE_SIZE, SEGMENT_BYTES + 1, 0) == GASNET_ERR_BAD_ARG);
  CHECK(gasnet_attach(table, TABLE_SIZE, gasnet_getMaxLocalSegmentSize() + GASNET_PAGESIZE, 0) ==
        GASNET_ERR_BAD_ARG);
  CHECK(gasnet_getMaxGlobalSegmentSize() >= SEGMENT_BYTES);
}

static void test_out_of_segment(void) {
  char* const begin = segments[0].addr;
  char* const end = begin + SEGMENT_BYTES;
  CHECK(gasnet_AMRequestLong0(0, LONG, pattern, 2, end - 1) == GASNET_ERR_BAD_ARG);
  CHECK(gasnet_AMRequestLong0(0, LONG, pattern, 1, begin - 1) == GASNET_ERR_BAD_ARG);
}
#endif

/* What gasnet_attach() says of tables that the specification does not allow. */
static void test_tables(void) {
  static gasnet_handlerentry_t full[129];
  gasnet_handlerentry_t wrong[] = {{127, (void (*)())echo}, {200, (void (*)())echo}, {200, (void (*)())echo}};
  gasnet_handlerentry_t empty = {200, NULL};
  for (int i = 0; i < 129; ++i) full[i].fnptr = (void (*)())echo;
  CHECK(gasnet_attach(wrong, 1, 0, 0) == GASNET_ERR_BAD_ARG);
  CHECK(gasnet_attach(wrong + 1, 2, 0, 0) == GASNET_ERR_BAD_ARG);
  CHECK(gasnet_attach(&empty, 1, 0, 0) == GASNET_ERR_BAD_ARG);
  CHECK(gasnet_attach(full, 129, 0, 0) == GASNET_ERR_BAD_ARG);
  CHECK(gasnet_attach(NULL, 1, 0, 0) == GASNET_ERR_BAD_ARG);
  CHECK(gasnet_attach(table, -1, 0, 0) == GASNET_ERR_BAD_ARG);
}

static void test_job(void) {
  gasnet_nodeinfo_t* const nodes = malloc(count * sizeof *nodes);
  CHECK(gasnet_getSegmentInfo(segments, (int)count) == GASNET_OK);
  CHECK(gasnet_getSegmentInfo(segments, (int)count - 1) == GASNET_ERR_BAD_ARG);
  CHECK(gasnet_getNodeInfo(nodes, (int)count) == GASNET_OK);
  CHECK(nodes[me].host <= me && nodes[me].supernode == nodes[me].host);
  for (gasnet_node_t i = 0; i < count; ++i) check_segment(&segments[i]);
  free(nodes);
  CHECK(gasnet_attach(table, TABLE_SIZE, SEGMENT_BYTES, 0) == GASNET_ERR_NOT_INIT);
  CHECK(table[TABLE_SIZE - 1].index >= 128 && table[TABLE_SIZE - 1].index != COUNTED);
  CHECK(gasnet_AMMaxArgs() == 16 && gasnet_AMMaxMedium() == 8192);
  CHECK(gasnet_AMMaxLongRequest() >= LEAST_LONG && gasnet_AMMaxLongReply() >= LEAST_LONG);
  CHECK(strcmp(gasnet_ErrorName(GASNET_ERR_BAD_ARG), "GASNET_ERR_BAD_ARG") == 0);
  CHECK(strlen(gasnet_ErrorDesc(GASNET_ERR_RESOURCE)) > 0 && strlen(gasnet_ErrorDesc(-1)) > 0);
  CHECK(gasnet_getenv("GASNET_TEST_VALUE") != NULL && strcmp(gasnet_getenv("GASNET_TEST_VALUE"), "12") == 0);
  CHECK(gasnet_getenv("NO_SUCH_NAME") == NULL);
  CHECK(gasnet_set_waitmode(GASNET_WAIT_BLOCK) == GASNET_OK && gasnet_set_waitmode(9) == GASNET_ERR_BAD_ARG);
  CHECK(strstr(GASNET_CONFIG_STRING, "SPEC=1.8") != NULL);
}

static void test_messages(void) {
  static void (*const send[])(size_t) = {send_0,  send_1,  send_2,  send_3,  send_4,  send_5,
                                         send_6,  send_7,  send_8,  send_9,  send_10, send_11,
                                         send_12, send_13, send_14, send_15, send_16};
  static const size_t sizes[] = {0, 1, 7, 47, 48, 49, 56, 57, 100, 4095, 4096, 4097, 8192, 8193, 65536, 3, 8};
  for (int n = 0; n <= 16; ++n) send[n](sizes[n]);
  for (int n = 0; n <= 16; ++n) send[16 - n](sizes[n]);
  CHECK(gasnet_AMRequestShort0(count, SHORT) == GASNET_ERR_BAD_ARG);
  CHECK(gasnet_AMRequestShort0(0, 127) == GASNET_ERR_BAD_ARG);
  CHECK(gasnet_AMRequestMedium0(0, MEDIUM, pattern, 8193) == GASNET_ERR_BAD_ARG);
  CHECK(gasnet_AMRequestMedium0(0, MEDIUM, NULL, 1) == GASNET_ERR_BAD_ARG);
  CHECK(gasnet_AMRequestLong0(0, LONG, pattern, gasnet_AMMaxLongRequest() + 1, segments[0].addr) ==
        GASNET_ERR_BAD_ARG);
  test_out_of_segment();
  CHECK(gasneti_request_short(0, SHORT, &(arg){0}, -1) == GASNET_ERR_BAD_ARG);
  CHECK(gasneti_request_short(0, SHORT, (arg[17]){0}, 17) == GASNET_ERR_BAD_ARG);
  CHECK(gasnet_AMGetMsgSource(NULL, &next) == GASNET_ERR_BAD_ARG);
}

/* Every node floods every other one, with replies and without. */
static void test_flood(void) {
  const int rounds = 300;
  requests = 0; /* before the barrier: requests of others may come in it */
  barrier();
  for (int i = 0; i < rounds; ++i) {
    for (gasnet_node_t to = 0; to < count; ++to)
      GASNET_SAFE(gasnet_AMRequestShort1(to, i % 2 ? ECHO : COUNTED, 1));
  }
  GASNET_BLOCKUNTIL(requests == rounds * (int)count);
  barrier();
}

static void fill(char* memory, size_t bytes, int seed) {
  for (size_t i = 0; i < bytes; ++i) memory[i] = (char)(i * 31 + (size_t)seed);
}

static void test_access(void) {
  static const size_t sizes[12] = {1, 2, 8, 63, 64, 255, 256, 257, 4096, 4097, 65536, 1000000};
  char* const here = malloc(2000000);
  char* const there = (char*)segments[next].addr + 500000;
  char* const own = (char*)segments[me].addr + 2000000;
  for (size_t s = 0; s < ACCESS_SIZES; ++s) {
    const size_t bytes = sizes[s];
    for (int kind = 0; kind < 8; ++kind) {
      char* const source = kind % 2 ? here : own; /* outside and inside the segment */
      char* const back = kind % 2 ? here + 1000000 : own + 1000000;
      gasnet_handle_t handles[3] = {GASNET_INVALID_HANDLE, GASNET_INVALID_HANDLE, GASNET_INVALID_HANDLE};
      fill(source, bytes, kind + me);
      memset(back, 0, bytes);
      if (kind / 2 == 0) {
        gasnet_put(next, there, source, bytes);
        gasnet_get(back, next, there, bytes);
      } else if (kind / 2 == 1) {
        gasnet_put_bulk(next, there, source, bytes);
        gasnet_get_bulk(back, next, there, bytes);
      } else if (kind / 2 == 2) {
        handles[1] = gasnet_put_nb(next, there, source, bytes);
        memset(source, -1, bytes); /* a put that is not bulk has read its source */
        fill(source, 0, 0);
        gasnet_wait_syncnb(handles[1]);
        handles[1] = gasnet_get_nb(back, next, there, bytes);
        gasnet_wait_syncnb_all(handles, 3);
        CHECK(handles[1] == GASNET_INVALID_HANDLE);
        fill(source, bytes, kind + me);
      } else {
        gasnet_put_nbi(next, there, source, bytes / 2);
        gasnet_put_nbi_bulk(next, there + bytes / 2, source + bytes / 2, bytes - bytes / 2);
        gasnet_wait_syncnbi_puts();
        gasnet_get_nbi(back, next, there, bytes / 2);
        gasnet_get_nbi_bulk(back + bytes / 2, next, there + bytes / 2, bytes - bytes / 2);
        while (gasnet_try_syncnbi_gets() != GASNET_OK) continue;
      }
      CHECK(memcmp(source, back, bytes) == 0);
    }
  }
  free(here);
}

static void test_handles(void) {
  char* const there = (char*)segments[next].addr + 500000;
  char back[4][100];
  gasnet_handle_t handles[4];
  for (int i = 0; i < 4; ++i) handles[i] = gasnet_put_nb_bulk(next, there + 100 * i, pattern + i, 100);
  while (gasnet_try_syncnb_some(handles, 4) == GASNET_ERR_NOT_READY) continue;
  gasnet_wait_syncnb_some(handles, 4);
  while (gasnet_try_syncnb_all(handles, 4) != GASNET_OK) continue;
  gasnet_wait_syncnb_some(handles, 4);
  gasnet_begin_nbi_accessregion();
  for (int i = 0; i < 4; ++i) gasnet_get_nbi(back[i], next, there + 100 * i, 100);
  gasnet_memset_nbi(next, there + 400, 5, 50);
  gasnet_put_nbi_val(next, there + 450, 0x0706050403020100, 8);
  gasnet_handle_t region = gasnet_end_nbi_accessregion();
  while (gasnet_try_syncnb(region) != GASNET_OK) continue;
  for (int i = 0; i < 4; ++i) CHECK(memcmp(back[i], pattern + i, 100) == 0);
  gasnet_handle_t set = gasnet_memset_nb(next, there + 460, -2, 3);
  gasnet_wait_syncnb(set);
  gasnet_memset(next, there + 463, 9, 1);
  CHECK(gasnet_get_val(next, there + 460, 4) == 0x09fefefe);
  CHECK(gasnet_get_val(next, there + 449, 2) == 0x0005);
  gasnet_put_val(next, there + 500, 0x1234567890, 5);
  gasnet_wait_syncnb(gasnet_put_nb_val(next, there + 505, 0xab, 1));
  gasnet_valget_handle_t value = gasnet_get_nb_val(next, there + 500, 6);
  CHECK(gasnet_wait_syncnb_valget(value) == 0xab1234567890);
  gasnet_wait_syncnbi_all();
  CHECK(gasnet_try_syncnbi_all() == GASNET_OK && gasnet_try_syncnbi_puts() == GASNET_OK);
  gasnet_wait_syncnbi_gets();
  gasnet_wait_syncnb(GASNET_INVALID_HANDLE);
}

static void test_barriers(void) {
  int id = -1;
  for (int i = 0; i < 5; ++i) {
    gasnet_barrier_notify(i, 0);
    CHECK(gasnet_barrier_wait(i, 0) == GASNET_OK);
    CHECK(gasnet_barrier_result(&id) == GASNET_OK && id == i);
    gasnet_barrier_notify(i, 0);
    int result = gasnet_barrier_try(i, 0);
    while (result == GASNET_ERR_NOT_READY) result = gasnet_barrier_try(i, 0);
    CHECK(result == GASNET_OK);
  }
  const int is_last = me == count - 1;
  gasnet_barrier_notify(is_last ? 0 : 42, is_last ? GASNET_BARRIERFLAG_ANONYMOUS : 0);
  CHECK(gasnet_barrier_wait(is_last ? 0 : 42, is_last ? GASNET_BARRIERFLAG_ANONYMOUS : 0) == GASNET_OK);
  if (count > 1) {
    gasnet_barrier_notify(is_last ? 1 : 2, 0);
    CHECK(gasnet_barrier_wait(is_last ? 1 : 2, 0) == GASNET_ERR_BARRIER_MISMATCH);
    CHECK(gasnet_barrier_result(&id) == GASNET_ERR_RESOURCE);
  }
  gasnet_barrier_notify(0, is_last ? GASNET_BARRIERFLAG_MISMATCH : 0);
  CHECK(gasnet_barrier_wait(0, is_last ? GASNET_BARRIERFLAG_MISMATCH : 0) == GASNET_ERR_BARRIER_MISMATCH);
  gasnet_barrier_notify(3, 0);
  CHECK(gasnet_barrier_wait(4, 0) == GASNET_ERR_BARRIER_MISMATCH);
  CHECK(gasnet_barrier(0, GASNET_BARRIERFLAG_ANONYMOUS) == GASNET_OK);
  CHECK(gasnet_barrier_result(&id) == 1);
}

static void test_locks(void) {
  gasnet_hsl_t own;
  gasnet_hsl_init(&own);
  gasnet_hsl_lock(&own);
  CHECK(gasnet_hsl_trylock(&own) == GASNET_ERR_NOT_READY);
  gasnet_hsl_unlock(&own);
  CHECK(gasnet_hsl_trylock(&own) == GASNET_OK);
  gasnet_hsl_unlock(&own);
  gasnet_hsl_destroy(&own);
  gasnet_hold_interrupts();
  gasnet_resume_interrupts();
}

static void test_broadcast(void) {
  static char data[20000];
  gasnet_coll_init(NULL, me, NULL, 0, 0);
  for (gasnet_node_t root = 0; root < count; ++root) {
    memset(data, 0, sizeof data);
    gasnet_coll_broadcast(GASNET_TEAM_ALL, data, root, pattern + root, sizeof data,
                          GASNET_COLL_LOCAL | GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_ALLSYNC);
    CHECK(memcmp(data, pattern + root, sizeof data) == 0);
  }
}

int main(int argc, char** argv) {
  if (gasnet_AMPoll() != GASNET_ERR_NOT_INIT) return 1;
  GASNET_SAFE(gasnet_init(&argc, &argv));
  me = gasnet_mynode();
  count = gasnet_nodes();
  next = (me + 1) % count;
  segments = malloc(count * sizeof *segments);
  fill(pattern, sizeof pattern, 11);
  CHECK(gasnet_init(&argc, &argv) == GASNET_ERR_NOT_INIT);
  test_segment();
  test_tables();
  GASNET_SAFE(gasnet_attach(table, TABLE_SIZE, SEGMENT_BYTES, 0));
  test_job();
  share_memory();
  test_messages();
  barrier();
  test_flood();
  test_access();
  test_handles();
  test_barriers();
  test_locks();
  test_broadcast();
  barrier();
  if (me == 0) puts("passed");
  gasnet_exit(0);
}
