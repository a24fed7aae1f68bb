/* Active messages of each kind with each number of arguments: handlers that check what comes and reply, and
 * functions that send. */
#include <gasnet.h>
#include <string.h>

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
static volatile int replies;

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

static void note_reply(gasnet_token_t token, int n, const arg* given) {
  check_source(token);
  check_arguments(n, given);
  ++replies;
}

/* One handler of each kind for each number n of arguments: SHORT + n and so on. */
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
  FIRST_OTHER = 230 /* handler: those of the program */
};

static void check_payload(const char* payload, size_t bytes) {
  CHECK(memcmp(payload, pattern, bytes) == 0);
}

#define HANDLERS(n, COMMA, ...)                                                                         \
  static void short_done_##n(gasnet_token_t token PARAMETERS_##n) {                                     \
    note_reply(token, n, (const arg[]){LIST_##n});                                                      \
  }                                                                                                     \
  static void medium_done_##n(gasnet_token_t token, void* payload, size_t bytes PARAMETERS_##n) {       \
    check_payload(payload, bytes);                                                                      \
    note_reply(token, n, (const arg[]){LIST_##n});                                                      \
  }                                                                                                     \
  static void long_done_##n(gasnet_token_t token, void* payload, size_t bytes PARAMETERS_##n) {         \
    CHECK(payload == (char*)segments[me].addr + 1000);                                                  \
    check_payload(payload, bytes);                                                                      \
    note_reply(token, n, (const arg[]){LIST_##n});                                                      \
  }                                                                                                     \
  static void short_##n(gasnet_token_t token PARAMETERS_##n) {                                          \
    check_arguments(n, (const arg[]){LIST_##n});                                                        \
    GASNET_SAFE(gasnet_AMReplyShort##n(token, SHORT_DONE + n COMMA __VA_ARGS__));                       \
  }                                                                                                     \
  static void medium_##n(gasnet_token_t token, void* payload, size_t bytes PARAMETERS_##n) {            \
    check_arguments(n, (const arg[]){LIST_##n});                                                        \
    check_payload(payload, bytes);                                                                      \
    GASNET_SAFE(gasnet_AMReplyMedium##n(token, MEDIUM_DONE + n, payload, bytes COMMA __VA_ARGS__));     \
  }                                                                                                     \
  static void long_##n(gasnet_token_t token, void* payload, size_t bytes PARAMETERS_##n) {              \
    gasnet_node_t source;                                                                               \
    check_arguments(n, (const arg[]){LIST_##n});                                                        \
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

#define ENTRIES(n)                                                                    \
  {SHORT + n, (void (*)())short_##n}, {MEDIUM + n, (void (*)())medium_##n},           \
      {LONG + n, (void (*)())long_##n}, {SHORT_DONE + n, (void (*)())short_done_##n}, \
      {MEDIUM_DONE + n, (void (*)())medium_done_##n}, {                               \
    LONG_DONE + n, (void (*)())long_done_##n                                          \
  }
