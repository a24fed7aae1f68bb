/* fuzz SEED SEQUENCES: sequences of random legal calls of GASNet-1, checked against a model. Every process
 * draws the plans of all from the seed, carries out its own, and at the end of a sequence compares its memory
 * and what its handlers have seen with the plans of the others. Prints "passed" on node 0, or says what is
 * wrong and ends with status 1. */
#include <gasnet.h>
#include <string.h>

enum {
  most_nodes = 8,
  operations = 60,
  slices = 32, /* slices of an area: each origin has one at each target, and writes a slice again once it is
                  in order */
  slice_bytes = 128,
  large_bytes = 32768, /* size of the last slice */
  area_bytes = (slices - 1) * slice_bytes + large_bytes
};
#define CHECK(condition)                                                                                 \
  do {                                                                                                   \
    if (!(condition)) {                                                                                  \
      fprintf(stderr, "node %u, sequence %d, operation %d: %s:%d: %s\n", me, sequence, number, __FILE__, \
              __LINE__, #condition);                                                                     \
      gasnet_exit(1);                                                                                    \
    }                                                                                                    \
  } while (0)

enum kind {
  put,
  put_bulk,
  put_nb,
  put_nb_bulk,
  put_nbi,
  put_nbi_bulk,
  set,
  set_nb,
  set_nbi,
  put_value,
  put_nb_value,
  put_nbi_value,
  last_write = put_nbi_value,
  get,
  get_bulk,
  get_nb,
  get_nbi,
  get_value,
  get_own,
  short_request,
  medium_request,
  long_request,
  long_async,
  region,
  sync_all,
  poll,
  kinds
};

struct operation {
  enum kind kind;
  gasnet_node_t target;
  int slice;
  uint32_t offset, size;
  uint64_t value;
};

static gasnet_node_t me, nodes;
static int sequence, number;
static gasnet_seginfo_t* segments;
static uint64_t state;
static struct operation plan[operations];
static unsigned char model[most_nodes]
                          [area_bytes]; /* by target what I have written, later by origin what is mine */
static unsigned char sources[operations][large_bytes], found[operations][large_bytes];
static gasnet_handle_t handles[operations];
static int is_pending[operations]; /* with a handle, 1; implicitly, 2 */
static uint64_t seen[most_nodes], replied, expected_replies;
static volatile int replies;
static int sent;

static uint64_t draw(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * 0x2545f4914f6cdd1dULL >> 16;
}
static uint32_t below(uint32_t bound) {
  return (uint32_t)(draw() % bound);
}
static unsigned char constant(gasnet_node_t node, uint32_t at) {
  return (unsigned char)(at * 13 + node * 101 + 7);
}
static unsigned char content(const struct operation* op, uint32_t at) {
  return (unsigned char)(op->value >> (at % 8 * 8));
}
static uint32_t place(const struct operation* op) {
  return (uint32_t)op->slice * slice_bytes + op->offset;
}
static unsigned char* area(gasnet_node_t node, gasnet_node_t origin) {
  return (unsigned char*)segments[node].addr + (size_t)origin * area_bytes;
}
static int sets(enum kind kind) {
  return kind == set || kind == set_nb || kind == set_nbi;
}
static int has_value(enum kind kind) {
  return kind == put_value || kind == put_nb_value || kind == put_nbi_value || kind == get_value;
}
static int writes(enum kind kind) {
  return kind <= last_write || kind == long_request || kind == long_async;
}

static void make_plan(uint64_t seed, gasnet_node_t origin) {
  state = (seed * 1000003 + (uint64_t)sequence) * 64 + origin + 1;
  for (int i = 0; i < 8; ++i) draw();
  for (int i = 0; i < operations; ++i) {
    struct operation* op = &plan[i];
    op->kind = (enum kind)below(kinds);
    op->target = below(nodes);
    op->slice = (int)below(slices);
    const uint32_t room = op->slice == slices - 1 ? large_bytes : slice_bytes;
    op->offset = has_value(op->kind) ? below(room - 8) : below(room);
    op->size = has_value(op->kind) ? 1 + below(8)
               : below(4) == 0     ? room - op->offset
                                   : below(room - op->offset + 1);
    op->value = draw() << 32 ^ draw();
    if (op->kind == medium_request && op->size > gasnet_AMMaxMedium())
      op->size = (uint32_t)gasnet_AMMaxMedium();
    if (op->kind >= long_request && op->kind <= long_async && op->size > gasnet_AMMaxLongRequest())
      op->size = (uint32_t)gasnet_AMMaxLongRequest();
  }
}

/* What the operation leaves in an area. */
static void apply(const struct operation* op, unsigned char* bytes) {
  for (uint32_t at = 0; at < op->size; ++at)
    bytes[place(op) + at] = sets(op->kind) ? (unsigned char)op->value : content(op, at);
}

static gasnet_handlerarg_t low(uint64_t value) {
  return (gasnet_handlerarg_t)(uint32_t)value;
}
static void answer(gasnet_token_t token, uint64_t value, const void* payload, size_t bytes) {
  gasnet_node_t source = nodes;
  CHECK(gasnet_AMGetMsgSource(token, &source) == GASNET_OK && source < nodes);
  seen[source] += value;
  if (value % 2 == 0) {
    CHECK(gasnet_AMReplyShort2(token, 210, low(value), low(value >> 32)) == GASNET_OK);
  } else {
    const size_t room = gasnet_AMMaxMedium();
    CHECK(gasnet_AMReplyMedium2(token, 211, (void*)payload, bytes < room ? bytes : room, low(value),
                                low(value >> 32)) == GASNET_OK);
  }
}
static uint64_t joined(gasnet_handlerarg_t first, gasnet_handlerarg_t second) {
  return (uint32_t)first | (uint64_t)(uint32_t)second << 32;
}
static void serve_short(gasnet_token_t token, gasnet_handlerarg_t first, gasnet_handlerarg_t second) {
  answer(token, joined(first, second), NULL, 0);
}
static void serve_bulk(gasnet_token_t token, void* payload, size_t bytes, gasnet_handlerarg_t first,
                       gasnet_handlerarg_t second) {
  const uint64_t value = joined(first, second);
  for (size_t at = 0; at < bytes; ++at)
    CHECK(((unsigned char*)payload)[at] == (unsigned char)(value >> (at % 8 * 8)));
  answer(token, value, payload, bytes);
}
static void take_short(gasnet_token_t token, gasnet_handlerarg_t first, gasnet_handlerarg_t second) {
  (void)token;
  replied += joined(first, second);
  ++replies;
}
static void take_bulk(gasnet_token_t token, void* payload, size_t bytes, gasnet_handlerarg_t first,
                      gasnet_handlerarg_t second) {
  const uint64_t value = joined(first, second);
  for (size_t at = 0; at < bytes; ++at)
    CHECK(((unsigned char*)payload)[at] == (unsigned char)(value >> (at % 8 * 8)));
  take_short(token, first, second);
}

static void check_found(int which) {
  const struct operation* op = &plan[which];
  if (op->kind != get_nb && op->kind != get_nbi) return;
  for (uint32_t at = 0; at < op->size; ++at) CHECK(found[which][at] == constant(op->target, place(op) + at));
}
static void finish(int way) {
  for (int i = 0; i < number; ++i) {
    if (is_pending[i] != way) continue;
    if (way == 1) gasnet_wait_syncnb(handles[i]);
    is_pending[i] = 0;
    check_found(i);
  }
}
static void sync(void) {
  switch (draw() % 3) {
    case 0:
      gasnet_wait_syncnbi_all();
      break;
    case 1:
      gasnet_wait_syncnbi_puts();
      gasnet_wait_syncnbi_gets();
      break;
    default:
      while (gasnet_try_syncnbi_all() != GASNET_OK) gasnet_AMPoll();
  }
  finish(2);
  finish(1);
}

/* Nothing is under way to the same slice, and what has been written there is in order. */
static void settle_slice(const struct operation* op) {
  for (int i = 0; i < number; ++i) {
    if (is_pending[i] != 0 && plan[i].target == op->target && plan[i].slice == op->slice &&
        writes(plan[i].kind)) {
      sync();
      return;
    }
  }
}

static void carry_out(void) {
  struct operation* op = &plan[number];
  unsigned char* const source = sources[number];
  unsigned char* const there = area(op->target, me) + place(op);
  unsigned char* const constants = area(op->target, nodes) + place(op);
  gasnet_handle_t* const handle = &handles[number];
  const gasnet_handlerarg_t first = low(op->value), second = low(op->value >> 32);
  uint64_t number_of_value = 0;
  if (writes(op->kind) || op->kind == get_own) settle_slice(op);
  for (uint32_t at = 0; at < op->size; ++at) source[at] = content(op, at);
  for (uint32_t at = 0; at < 8; ++at) number_of_value |= (uint64_t)content(op, at) << (at * 8);
  switch (op->kind) {
    case put:
      gasnet_put(op->target, there, source, op->size);
      break;
    case put_bulk:
      gasnet_put_bulk(op->target, there, source, op->size);
      break;
    case put_nb:
      *handle = gasnet_put_nb(op->target, there, source, op->size);
      memset(source, 0, op->size);
      break;
    case put_nb_bulk:
      *handle = gasnet_put_nb_bulk(op->target, there, source, op->size);
      break;
    case put_nbi:
      gasnet_put_nbi(op->target, there, source, op->size);
      memset(source, 0, op->size);
      break;
    case put_nbi_bulk:
      gasnet_put_nbi_bulk(op->target, there, source, op->size);
      break;
    case set:
      gasnet_memset(op->target, there, (int)op->value, op->size);
      break;
    case set_nb:
      *handle = gasnet_memset_nb(op->target, there, (int)op->value, op->size);
      break;
    case set_nbi:
      gasnet_memset_nbi(op->target, there, (int)op->value, op->size);
      break;
    case put_value:
      gasnet_put_val(op->target, there, number_of_value, op->size);
      break;
    case put_nb_value:
      *handle = gasnet_put_nb_val(op->target, there, number_of_value, op->size);
      break;
    case put_nbi_value:
      gasnet_put_nbi_val(op->target, there, number_of_value, op->size);
      break;
    case get:
      gasnet_get(found[number], op->target, constants, op->size);
      break;
    case get_bulk:
      gasnet_get_bulk(found[number], op->target, constants, op->size);
      break;
    case get_nb:
      *handle = gasnet_get_nb(found[number], op->target, constants, op->size);
      break;
    case get_nbi:
      gasnet_get_nbi(found[number], op->target, constants, op->size);
      break;
    case get_value: {
      const uint64_t value = gasnet_get_val(op->target, constants, op->size);
      for (uint32_t at = 0; at < op->size; ++at)
        CHECK((unsigned char)(value >> (at * 8)) == constant(op->target, place(op) + at));
      CHECK(op->size == 8 || value >> (op->size * 8) == 0);
      break;
    }
    case get_own:
      gasnet_get(found[number], op->target, there, op->size);
      CHECK(memcmp(found[number], &model[op->target][place(op)], op->size) == 0);
      break;
    case short_request:
      CHECK(gasnet_AMRequestShort2(op->target, 200, first, second) == GASNET_OK);
      break;
    case medium_request:
      CHECK(gasnet_AMRequestMedium2(op->target, 201, source, op->size, first, second) == GASNET_OK);
      break;
    case long_request:
      CHECK(gasnet_AMRequestLong2(op->target, 201, source, op->size, there, first, second) == GASNET_OK);
      break;
    case long_async:
      CHECK(gasnet_AMRequestLongAsync2(op->target, 201, source, op->size, there, first, second) == GASNET_OK);
      break;
    case region:
      gasnet_begin_nbi_accessregion();
      gasnet_get_nbi(found[number], op->target, constants, op->size);
      gasnet_get_nbi_bulk(found[number] + op->size, op->target, constants, op->size > 8 ? 8 : op->size);
      gasnet_wait_syncnb(gasnet_end_nbi_accessregion());
      for (uint32_t at = 0; at < op->size; ++at)
        CHECK(found[number][at] == constant(op->target, place(op) + at));
      break;
    case sync_all:
      sync();
      break;
    case poll:
      CHECK(gasnet_AMPoll() == GASNET_OK);
      break;
    case kinds:
      break;
  }
  if (op->kind == get || op->kind == get_bulk) {
    for (uint32_t at = 0; at < op->size; ++at)
      CHECK(found[number][at] == constant(op->target, place(op) + at));
  }
  is_pending[number] = op->kind == put_nb || op->kind == put_nb_bulk || op->kind == set_nb ||
                               op->kind == put_nb_value || op->kind == get_nb
                           ? 1
                       : op->kind == put_nbi || op->kind == put_nbi_bulk || op->kind == set_nbi ||
                               op->kind == put_nbi_value || op->kind == get_nbi
                           ? 2
                           : 0;
  if (op->kind >= short_request && op->kind <= long_async) {
    expected_replies += op->value;
    ++sent;
    if (op->kind >= long_request || draw() % 4 == 0)
      GASNET_BLOCKUNTIL(replies == sent); /* a long one is in order */
  }
  if (writes(op->kind)) apply(op, model[op->target]);
}

static void barrier(int id) {
  const int flags = draw() % 2 == 0 ? GASNET_BARRIERFLAG_ANONYMOUS : 0;
  gasnet_barrier_notify(id, flags);
  if (draw() % 2 == 0) {
    int result;
    while ((result = gasnet_barrier_try(id, flags)) == GASNET_ERR_NOT_READY) gasnet_AMPoll();
    CHECK(result == GASNET_OK);
  } else {
    CHECK(gasnet_barrier_wait(id, flags) == GASNET_OK);
  }
}

int main(int argc, char** argv) {
  gasnet_handlerentry_t table[] = {{200, (void (*)())serve_short},
                                   {201, (void (*)())serve_bulk},
                                   {210, (void (*)())take_short},
                                   {211, (void (*)())take_bulk}};
  GASNET_SAFE(gasnet_init(&argc, &argv));
  const uint64_t seed = strtoull(argv[1], NULL, 10);
  const int sequences = atoi(argv[2]);
  me = gasnet_mynode();
  nodes = gasnet_nodes();
  const uintptr_t bytes =
      ((uintptr_t)(nodes + 1) * area_bytes + GASNET_PAGESIZE) / GASNET_PAGESIZE * GASNET_PAGESIZE;
  GASNET_SAFE(gasnet_attach(table, 4, bytes, 0));
  gasnet_seginfo_t all[most_nodes];
  segments = all;
  GASNET_SAFE(gasnet_getSegmentInfo(segments, (int)nodes));
  memset(segments[me].addr, 0, bytes);
  for (uint32_t at = 0; at < area_bytes; ++at) area(me, nodes)[at] = constant(me, at);
  static unsigned char expected[most_nodes][area_bytes];
  uint64_t expected_seen[most_nodes] = {0};
  state = seed + 1;
  barrier(-1);
  for (sequence = 0; sequence < sequences; ++sequence) {
    make_plan(seed, me);
    for (number = 0; number < operations; ++number) carry_out();
    sync();
    GASNET_BLOCKUNTIL(replies == sent);
    CHECK(replied == expected_replies);
    barrier(2 * sequence);
    for (gasnet_node_t origin = 0; origin < nodes; ++origin) {
      make_plan(seed, origin);
      for (number = 0; number < operations; ++number) {
        const struct operation* op = &plan[number];
        if (op->target != me) continue;
        if (writes(op->kind)) apply(op, expected[origin]);
        if (op->kind >= short_request && op->kind <= long_async) expected_seen[origin] += op->value;
      }
      CHECK(memcmp(area(me, origin), expected[origin], area_bytes) == 0);
      CHECK(seen[origin] == expected_seen[origin]);
    }
    state = seed * 7 + (uint64_t)sequence * 13 + 5; /* the same for all, for the flags of barriers */
    barrier(2 * sequence + 1);
  }
  if (me == 0) printf("passed\n");
  gasnet_exit(0);
  return 0;
}
