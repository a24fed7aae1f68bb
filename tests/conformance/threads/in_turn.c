// Two threads of each rank, of which only one runs at a time. The argument names what the second one does.
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../c/check.h"
#include "apenet_compute.h"

static const char* what = "";

static void* act(void* ignored) {
  (void)ignored;
  int word = 1;
  struct timespec now;
  if (strcmp(what, "mpi") == 0) MPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (strcmp(what, "wtime") == 0) CHECK(MPI_Wtime() >= 0);
  if (strcmp(what, "clock") == 0) CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  if (strcmp(what, "sleep") == 0) usleep(1);
  if (strcmp(what, "compute") == 0) ape_compute_seconds(1e-6);
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  CHECK(provided == MPI_THREAD_MULTIPLE && argc == 2);
  what = argv[1];
  for (int turn = 0; turn < 3; ++turn) {
    pthread_t second;
    CHECK(pthread_create(&second, NULL, act, NULL) == 0);
    CHECK(pthread_join(second, NULL) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
