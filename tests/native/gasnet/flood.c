/* flood MESSAGES SLEEP_US [MOST_KIB]: every node but 0 sends short requests to node 0, which first computes
 * and then replies to every second one. Node 0 checks that each node's came once and in order; all check that
 * they have never held more of the host's memory than MOST_KIB. */
#include <gasnet.h>
#include <sys/resource.h>
#include <unistd.h>

static gasnet_handlerarg_t expected[64];
static volatile int arrived, replies;

static void take(gasnet_token_t token, gasnet_handlerarg_t number) {
  gasnet_node_t source;
  GASNET_SAFE(gasnet_AMGetMsgSource(token, &source));
  if (number != expected[source]++) {
    fprintf(stderr, "node %u: message %d, expected %d\n", source, number, expected[source] - 1);
    gasnet_exit(1);
  }
  ++arrived;
  if (number % 2) GASNET_SAFE(gasnet_AMReplyShort0(token, 201));
}

static void replied(gasnet_token_t token) {
  (void)token;
  ++replies;
}

static void check_memory(long most_kib) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  if (usage.ru_maxrss <= most_kib) return;
  fprintf(stderr, "node %u: %ld KiB of memory, expected at most %ld\n", gasnet_mynode(), usage.ru_maxrss,
          most_kib);
  gasnet_exit(1);
}

int main(int argc, char** argv) {
  gasnet_handlerentry_t table[] = {{200, (void (*)())take}, {201, (void (*)())replied}};
  const int count = atoi(argv[1]);
  GASNET_SAFE(gasnet_init(&argc, &argv));
  GASNET_SAFE(gasnet_attach(table, 2, GASNET_PAGESIZE, 0));
  if (gasnet_mynode() == 0) {
    usleep((useconds_t)atoi(argv[2]));
    GASNET_BLOCKUNTIL(arrived == count * (int)(gasnet_nodes() - 1));
    printf("%d messages in order\n", arrived);
  } else {
    for (int i = 0; i < count; ++i) GASNET_SAFE(gasnet_AMRequestShort1(0, 200, i));
    GASNET_BLOCKUNTIL(replies == count / 2);
  }
  if (argc > 3) check_memory(atol(argv[3]));
  gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
  GASNET_SAFE(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS));
  gasnet_exit(0);
}
