// Does what a file says: one operation a line, "rank what peer bytes tag number". Waits by fi_cq_sread, so
// that nothing but the provider takes time. Prints where the buffers lie.
#define _GNU_SOURCE
#include "../../../src/api/compute/apenet_compute.h"
#include "fabric.h"

enum { most_operations = 1 << 14, buffer_bytes = 2 << 20, buffers = 16 };

static char memory[buffers][buffer_bytes];
static int is_done[most_operations];
static struct fi_context2 contexts[most_operations];

static void wait_for(struct Fabric* f, int number) {
  while (!is_done[number]) {
    struct fi_cq_tagged_entry entry;
    EXPECT(fi_cq_sread(f->cq, &entry, 1, NULL, -1) == 1);
    is_done[(struct fi_context2*)entry.op_context - contexts] = 1;
  }
}

int main(int argc, char** argv) {
  struct Fabric f;
  EXPECT(argc == 2);
  begin(&f, hints_for(FI_TAGGED | FI_DIRECTED_RECV));
  FILE* plan = fopen(argv[1], "r");
  EXPECT(plan != NULL);
  int rank;
  char what;
  long peer, bytes, tag, number;
  while (fscanf(plan, "%d %c %ld %ld %ld %ld", &rank, &what, &peer, &bytes, &tag, &number) == 6) {
    if (rank != f.rank) continue;
    char* buffer = memory[number % buffers];
    void* context = &contexts[number];
    if (what == 's') {
      EXPECT(fi_tsend(f.ep, buffer, (size_t)bytes, NULL, f.peers[peer], (uint64_t)tag, context) == 0);
    } else if (what == 'r') {
      const fi_addr_t from = peer < 0 ? FI_ADDR_UNSPEC : f.peers[peer];
      const uint64_t ignore = tag < 0 ? ~(uint64_t)0 : 0;
      EXPECT(fi_trecv(f.ep, buffer, (size_t)bytes, NULL, from, tag < 0 ? 0 : (uint64_t)tag, ignore,
                      context) == 0);
    } else if (what == 'w') {
      wait_for(&f, (int)number);
    } else {
      EXPECT(what == 'c');
      ape_compute_seconds((double)bytes * 1e-9);
    }
  }
  fclose(plan);
  if (f.rank == 0) printf("%lu\n", (unsigned long)&memory[0][0]);
  end(&f);
  return 0;
}
