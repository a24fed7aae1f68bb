/* fuzz SEED SEQUENCES: sequences of random legal calls of VELO and RMA, one process a node. Every process
 * makes the same plan from the seed, carries out its own part of it, and checks what comes from the others
 * against the plan. */
#include <string.h>
#include <velo2.h>

#include "rma_common.h"

enum {
  most_nodes = 8,
  operations = 60,
  area_bytes = 2048, /* a process has one for each origin of puts, and one that is only read */
  slots = operations,
  slot_bytes = area_bytes,
  done_type = 3
};
enum kind { message, put, put_quads, immediate, get, notification, lock, kinds };

struct operation {
  enum kind kind;
  int source, target;
  uint32_t offset, size, tag, spec, from;
  uint64_t value;
};

static int nodes, me;
static uint64_t state;
static velo2_port_t velo;
static velo2_connection_t to[most_nodes];
static RMA2_Port port;
static RMA2_Handle peer[most_nodes];
static unsigned char* memory; /* areas by origin, the area that is read, and slots for sources and gets */
static RMA2_Region* region;
static RMA2_NLA base[most_nodes];
static struct operation plan[operations];
static int planned;
static unsigned char model[most_nodes][area_bytes]; /* what the areas must hold at the end */
static int32_t locks[4];
static int next_message[most_nodes], next_put[most_nodes]; /* position in the plan, by source */
static int pending_origin, pending_target;                 /* notifications and messages still to come */
static int done[2]; /* processes that have come to the two ends of the sequence */
static int is_over; /* this process has passed the first: messages are of the next sequence */
struct kept {
  uint32_t source, length;
  uint8_t tag;
  unsigned char payload[120];
};
static struct kept kept[most_nodes * operations];
static int kept_count;

static uint64_t draw(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * 0x2545f4914f6cdd1dULL >> 16;
}
static uint32_t below(uint32_t bound) {
  return (uint32_t)(draw() % bound);
}
static unsigned char constant(int node, uint32_t at) {
  return (unsigned char)(at * 13 + (uint32_t)node * 101 + 7);
}
static unsigned char content(const struct operation* op, uint32_t at) {
  return (unsigned char)(op->value >> (at % 8 * 8));
}
static uint32_t area(int origin) {
  return (uint32_t)origin * area_bytes;
}
static uint32_t slot(int number) {
  return (uint32_t)(nodes + 1 + number) * area_bytes;
}

static int tells_target(const struct operation* op) {
  if (op->kind == get || op->kind == lock) return (op->spec & RMA2_RESPONDER_NOTIFICATION) != 0;
  return op->kind != message && (op->spec & RMA2_COMPLETER_NOTIFICATION) != 0;
}
static int tells_origin(const struct operation* op) {
  const int reads = op->kind == get || op->kind == lock;
  return op->kind == message ? 0 : ((op->spec & 1) != 0) + (reads && (op->spec & 4) != 0);
}

/* Mostly few operations, so that a run has many sequences. */
static void make_plan(void) {
  planned = 1 + (int)below(1 + below(1 + below(operations)));
  for (int i = 0; i < planned; ++i) {
    struct operation* op = &plan[i];
    *op = (struct operation){.kind = (enum kind)below(kinds), .source = (int)below((uint32_t)nodes)};
    op->target = (op->source + 1 + (int)below((uint32_t)nodes - 1)) % nodes;
    op->value = draw();
    op->spec = below(8);
    op->tag = below(256);
    const uint32_t unit = op->kind == put_quads ? 8 : 1;
    const uint32_t most = op->kind == immediate ? 8 : below(4) == 0 ? area_bytes : 64;
    op->size = op->kind == message ? below(57) : (1 + below(most / unit)) * unit;
    if (op->kind < immediate && op->kind != message) op->size = op->size < unit ? unit : op->size;
    op->offset = below((area_bytes - op->size) / unit + 1) * unit;
    op->from = below((area_bytes - op->size) / unit + 1) * unit;
    if (op->kind == get) op->spec |= RMA2_COMPLETER_NOTIFICATION; /* its data is checked then */
    if (op->kind == lock) op->spec |= RMA2_COMPLETER_NOTIFICATION;
  }
}

static void carry_out(int number) {
  const struct operation* op = &plan[number];
  const RMA2_Notification_Spec spec = (RMA2_Notification_Spec)op->spec;
  RMA2_Handle handle = peer[op->target];
  const RMA2_NLA there = base[op->target] + area(me) + op->offset;
  unsigned char* source = memory + slot(number) + op->from;
  for (uint32_t at = 0; at < op->size && op->kind != get; ++at) source[at] = content(op, at);
  switch (op->kind) {
    case message:
      if (velo2_send(&to[op->target], source, op->size, (uint8_t)op->tag, 1) != VELO2_RET_SUCCESS) exit(2);
      break;
    case put:
      check(rma2_post_put_bt(port, handle, region, slot(number) + op->from, op->size, there, spec, 0), "put");
      break;
    case put_quads:
      check(
          rma2_post_put_qw_direct(port, handle, base[me] + slot(number) + op->from, op->size, there, spec, 0),
          "put");
      break;
    case immediate:
      check(rma2_post_immediate_put(port, handle, op->size, op->value, there, spec, 0), "put");
      break;
    case get:
      check(rma2_post_get_bt(port, handle, region, slot(number), op->size,
                             base[op->target] + area(nodes) + op->offset, spec, 0),
            "get");
      break;
    case notification:
      check(rma2_post_notification(port, handle, (RMA2_Class)op->tag, op->value, spec, 0), "notification");
      break;
    default:
      check(rma2_post_lock(port, handle, 0, op->tag % 4, 1 << 30, (int32_t)op->size, spec, 0), "lock");
  }
  pending_origin += tells_origin(op);
}

static void check_message(const unsigned char* buffer, uint32_t length, uint32_t source, uint8_t tag) {
  int i = next_message[source];
  while (i < planned && !(plan[i].kind == message && plan[i].source == (int)source && plan[i].target == me))
    ++i;
  EXPECT(i < planned && length == plan[i].size && tag == plan[i].tag);
  for (uint32_t at = 0; at < length; ++at) EXPECT(buffer[at] == content(&plan[i], at));
  next_message[source] = i + 1;
  --pending_target;
}

static void take_message(int waits) {
  unsigned char buffer[120];
  uint32_t length, source;
  uint8_t tag, type = 1;
  const velo2_ret_t result =
      waits ? velo2_recv(&velo, buffer, sizeof buffer, &length, &source, &tag, 1)
            : velo2_probe_recv(&velo, buffer, sizeof buffer, &length, &source, &tag, &type);
  if (result == VELO2_RET_NO_MSG) return;
  if (result == VELO2_RET_NO_MATCH) type = done_type;
  if (result == VELO2_RET_NO_MATCH)
    EXPECT(velo2_recv(&velo, buffer, sizeof buffer, &length, &source, &tag, done_type) == VELO2_RET_SUCCESS);
  EXPECT(source < (uint32_t)nodes);
  if (type == done_type) {
    ++done[tag];
  } else if (is_over) {
    kept[kept_count] = (struct kept){.source = source, .length = length, .tag = tag};
    memcpy(kept[kept_count++].payload, buffer, length);
  } else {
    check_message(buffer, length, source, tag);
  }
}

static void check_origin(RMA2_Notification* noti) {
  --pending_origin;
  if (rma2_noti_get_cmd(noti) != RMA2_GET_BT_RSP) return;
  const int number = (int)((rma2_noti_get_local_address(noti) - base[me]) / area_bytes) - nodes - 1;
  const struct operation* op = &plan[number];
  EXPECT(op->kind == get && op->source == me && rma2_noti_get_size(noti) == op->size);
  for (uint32_t at = 0; at < op->size; ++at)
    EXPECT(memory[slot(number) + at] == constant(op->target, op->offset + at));
}

/* Puts and notification puts of one origin complete in their order. */
static void check_arrival(RMA2_Notification* noti) {
  const int source = rma2_noti_get_remote_nodeid(noti);
  const RMA2_Command command = rma2_noti_get_cmd(noti);
  --pending_target;
  int i = next_put[source];
  while (i < planned && !(plan[i].source == source && plan[i].target == me && plan[i].kind != get &&
                          plan[i].kind != lock && tells_target(&plan[i])))
    ++i;
  EXPECT(i < planned);
  const struct operation* op = &plan[i];
  static const RMA2_Command commands[] = {RMA2_ANY,           RMA2_BT_PUT, RMA2_QW_PUT,
                                          RMA2_IMMEDIATE_PUT, RMA2_ANY,    RMA2_NOTIFICATION_PUT};
  EXPECT(command == commands[op->kind]);
  if (op->kind == notification) {
    EXPECT(rma2_noti_get_notiput_payload(noti) == op->value && rma2_noti_get_notiput_class(noti) == op->tag);
  } else {
    EXPECT(rma2_noti_get_local_address(noti) == base[me] + area(source) + op->offset &&
           rma2_noti_get_size(noti) == op->size);
  }
  next_put[source] = i + 1;
}

static void take_notification(int waits) {
  RMA2_Notification* noti;
  const RMA2_ERROR error = waits ? rma2_noti_get_block(port, &noti) : rma2_noti_probe(port, &noti);
  if (error == RMA2_NO_NOTI) return;
  check(error, "notification");
  EXPECT(rma2_noti_get_error(noti) == 0);
  const RMA2_Notification_Spec type = rma2_noti_get_notification_type(noti);
  const RMA2_Command command = rma2_noti_get_cmd(noti);
  const int is_response = command == RMA2_GET_BT_RSP || command == RMA2_LOCK_RSP;
  if (type == RMA2_RESPONDER_NOTIFICATION) {
    --pending_target;
  } else if (type == RMA2_REQUESTER_NOTIFICATION || is_response) {
    check_origin(noti);
  } else {
    check_arrival(noti);
  }
  check(rma2_noti_free(port, noti), "rma2_noti_free");
}

static void meet(uint8_t end) {
  for (int node = 0; node < nodes; ++node) {
    if (node != me && velo2_send(&to[node], NULL, 0, end, done_type) != VELO2_RET_SUCCESS) exit(2);
  }
  while (done[end] < nodes - 1) take_message(1);
  done[end] -= nodes - 1;
}

static void sequence(uint64_t seed) {
  state = seed;
  make_plan();
  pending_origin = pending_target = 0;
  memset(next_message, 0, sizeof next_message);
  memset(next_put, 0, sizeof next_put);
  int messages = 0;
  for (int i = 0; i < planned; ++i) {
    if (plan[i].target != me) continue;
    messages += plan[i].kind == message;
    pending_target += plan[i].kind == message || tells_target(&plan[i]);
    for (uint32_t at = 0; at < plan[i].size && plan[i].kind >= put && plan[i].kind <= immediate; ++at)
      model[plan[i].source][plan[i].offset + at] = content(&plan[i], at);
    if (plan[i].kind == lock) locks[plan[i].tag % 4] += (int32_t)plan[i].size;
  }
  for (int i = 0; i < kept_count; ++i)
    check_message(kept[i].payload, kept[i].length, kept[i].source, kept[i].tag);
  kept_count = 0;
  /* From here on each process draws its own numbers. */
  state = seed * 31 + (uint64_t)me + 1;
  for (int i = 0; i < planned; ++i) {
    if (plan[i].source == me) carry_out(i);
    if (below(3) == 0) take_message(0);
    if (below(3) == 0) take_notification(0);
  }
  /* A lock behind the puts to a process: when it has come back, they are in memory. */
  for (int node = 0; node < nodes; ++node) {
    if (node == me) continue;
    check(rma2_post_lock(port, peer[node], 0, 5, -1, 0, RMA2_COMPLETER_NOTIFICATION, 0), "lock");
    ++pending_origin;
  }
  while (pending_origin > 0) take_notification(1);
  meet(0);
  is_over = 1;
  while (pending_target > 0) take_notification(1);
  for (int node = 0; node < nodes; ++node) {
    if (node != me) EXPECT(memcmp(memory + area(node), model[node], area_bytes) == 0);
  }
  meet(1);
  is_over = 0;
}

int main(int argc, char** argv) {
  const uint64_t seed = strtoull(argv[argc - 2], NULL, 10);
  const int count = atoi(argv[argc - 1]);
  if (velo2_open(&velo) != VELO2_RET_SUCCESS) return 2;
  port = open_port();
  me = velo2_get_nodeid(&velo);
  while (velo2_connect(&velo, &to[nodes], (velo2_nodeid_t)nodes, 0) == VELO2_RET_SUCCESS) ++nodes;
  const size_t bytes = (size_t)(nodes + 1 + slots) * area_bytes;
  memory = aligned_alloc(8, bytes);
  memset(memory, 0, bytes);
  for (uint32_t at = 0; at < area_bytes; ++at) memory[area(nodes) + at] = constant(me, at);
  base[me] = register_at(port, memory, bytes, &region);
  for (int node = 0; node < nodes; ++node) {
    peer[node] = connect_to(port, (RMA2_Nodeid)node);
    if (node != me)
      check(rma2_post_notification(port, peer[node], 0, base[me], RMA2_COMPLETER_NOTIFICATION, 0), "base");
  }
  for (int left = nodes - 1; left > 0; --left) {
    RMA2_Notification noti = take(port, RMA2_COMPLETER_NOTIFICATION, RMA2_NOTIFICATION_PUT);
    base[rma2_noti_get_remote_nodeid(&noti)] = rma2_noti_get_notiput_payload(&noti);
  }
  for (int i = 0; i < count; ++i) sequence((seed * 1000003 + (uint64_t)i + 1) * 0x9e3779b97f4a7c15ULL | 1);
  for (int number = 0; number < 4; ++number) {
    check(rma2_post_lock(port, peer[me], 0, (uint32_t)number, -1, 0, RMA2_COMPLETER_NOTIFICATION, 0), "lock");
    RMA2_Notification noti = take(port, RMA2_COMPLETER_NOTIFICATION, RMA2_LOCK_RSP);
    EXPECT((int32_t)rma2_noti_get_lock_value(&noti) == locks[number]);
  }
  printf("node %d: %d sequences\n", me, count);
  return 0;
}
