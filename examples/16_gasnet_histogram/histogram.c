// A histogram spread over all processes, by GASNet alone: Active Messages count, and gets read the counts.
#include <gasnet.h>
#include <stdint.h>

enum { count_handler = 200, bins_each = 4, samples = 1000 };

static uint64_t* bins;  // this process's bins, in its segment
static gasnet_seginfo_t* segments;
static volatile int counted;

static void count(gasnet_token_t token, gasnet_handlerarg_t bin) {
  (void)token;
  ++bins[bin];
  ++counted;
}

static void meet(void) {
  gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
  GASNET_SAFE(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS));
}

int main(int argc, char** argv) {
  gasnet_handlerentry_t table[] = {{count_handler, (void (*)())count}};
  GASNET_SAFE(gasnet_init(&argc, &argv));
  GASNET_SAFE(gasnet_attach(table, 1, GASNET_PAGESIZE, 0));
  const gasnet_node_t nodes = gasnet_nodes();
  segments = malloc(nodes * sizeof *segments);
  GASNET_SAFE(gasnet_getSegmentInfo(segments, (int)nodes));
  bins = segments[gasnet_mynode()].addr;
  for (int bin = 0; bin < bins_each; ++bin) bins[bin] = 0;
  meet();

  // Every process draws the same numbers, so that each knows how many are its own.
  uint32_t number = 1;
  int own = 0;
  for (uint32_t i = 0; i < samples * nodes; ++i) {
    number = number * 1664525U + 1013904223U;
    const uint32_t bin = (number >> 16) % (bins_each * nodes);
    own += bin / bins_each == gasnet_mynode();
    if (i % nodes != gasnet_mynode()) continue;
    GASNET_SAFE(
        gasnet_AMRequestShort1((gasnet_node_t)(bin / bins_each), count_handler, (int)(bin % bins_each)));
  }
  GASNET_BLOCKUNTIL(counted == own);
  meet();

  if (gasnet_mynode() == 0) {
    for (gasnet_node_t node = 0; node < nodes; ++node) {
      uint64_t theirs[bins_each];
      gasnet_get(theirs, node, segments[node].addr, sizeof theirs);
      printf("node %u:", node);
      for (int bin = 0; bin < bins_each; ++bin) printf(" %llu", (unsigned long long)theirs[bin]);
      printf("\n");
    }
  }
  meet();
  free(segments);
  gasnet_exit(0);
}
