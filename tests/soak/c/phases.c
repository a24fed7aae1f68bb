// Stays in the phase of its life that the first argument names, until it is ended.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int stays(const char* wanted, const char* phase) {
  if (strcmp(wanted, phase) != 0) return 0;
  printf("ready\n");
  fflush(stdout);
  return 1;
}

int main(int argc, char** argv) {
  const char* phase = argc > 1 ? argv[1] : "";
  if (stays(phase, "before-init")) {
    for (;;) pause();
  }
  if (strcmp(phase, "in-init") == 0) {
    // The last rank never calls MPI_Init, so the others wait inside it.
    const char* rank = getenv("PMI_RANK");
    const char* size = getenv("PMI_SIZE");
    if (stays(phase, phase) && rank != NULL && size != NULL && atoi(rank) == atoi(size) - 1) {
      for (;;) pause();
    }
  }
  MPI_Init(&argc, &argv);
  if (stays(phase, "messages")) {
    for (;;) MPI_Barrier(MPI_COMM_WORLD);
  }
  if (stays(phase, "computes")) {
    for (volatile int forever = 1; forever;) continue;
  }
  if (stays(phase, "polls")) {
    int flag = 0;
    for (;;) MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  }
  if (stays(phase, "host")) {
    for (;;) pause();
  }
  MPI_Finalize();
  if (stays(phase, "finalized")) {
    for (;;) pause();
  }
  return 0;
}
