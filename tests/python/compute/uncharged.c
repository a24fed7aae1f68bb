// Computes a known amount between its calls, by a CPU clock of its own.
//   uncharged long      2 s in one region, which takes a millisecond of the host
//   uncharged once US   US microseconds in one region
//   uncharged short     8000 regions of a microsecond each
//   uncharged declared  2 s, of which it declares 1 ms
//   uncharged none      nothing
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apenet_compute.h"

static int64_t worked_ns;

int64_t apenet_cpu_time_ps(void) {
  return 1000 * worked_ns;
}

static void work_long(void) {
#if defined(__x86_64__)
  const uint64_t begin = __builtin_ia32_rdtsc();
  while (__builtin_ia32_rdtsc() - begin < 4 << 20) continue;
#endif
  worked_ns += 2000000000;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* how = argc > 1 ? argv[1] : "";
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(how, "long") == 0 || strcmp(how, "declared") == 0) work_long();
  if (strcmp(how, "declared") == 0) ape_compute_seconds(1e-3);
  if (strcmp(how, "once") == 0) worked_ns += 1000L * atol(argv[2]);
  for (int i = 0; strcmp(how, "short") == 0 && i < 8000; ++i) {
    worked_ns += 1000;
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
