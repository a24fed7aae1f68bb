/* Every call of GASNet-1, checked against what must be in memory. Prints "passed" on node 0, or says what is
 * wrong and ends with status 1. */
#include <gasnet_coll.h>
#include <string.h>

#include "arguments.h"

#define SEGMENT_BYTES ((uintptr_t)4 << 20)

enum { COUNTED = FIRST_OTHER, ECHO, ADDRESS };

static volatile int requests;
static gasnet_hsl_t lock = GASNET_HSL_INITIALIZER;

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
