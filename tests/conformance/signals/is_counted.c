/* Sleeps twice, and prints how long in virtual time, and how many sleeps a preloaded library has counted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <time.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const double began = MPI_Wtime();
  const struct timespec length = {.tv_nsec = 20000000};
  nanosleep(&length, NULL);
  nanosleep(&length, NULL);
  const int* const count = (const int*)dlsym(RTLD_DEFAULT, "count_of_sleeps");
  printf("%.3f s, %d counted\n", MPI_Wtime() - began, count == NULL ? -1 : *count);
  MPI_Finalize();
  return 0;
}
