// Helpers of the self-checking programs: a check that ends the run, and values that identify messages.
#pragma once

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                   \
  do {                                                                                                     \
    if (!(condition)) {                                                                                    \
      int check_rank = -1;                                                                                 \
      MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);                                                          \
      fprintf(stderr, "%s:%d: rank %d: '%s' does not hold\n", __FILE__, __LINE__, check_rank, #condition); \
      fflush(stderr);                                                                                      \
      MPI_Abort(MPI_COMM_WORLD, 3);                                                                        \
    }                                                                                                      \
  } while (0)

struct World {
  int rank;
  int size;
};

static inline struct World begin_program(int* argc, char*** argv) {
  struct World world;
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  return world;
}

// The same with any number of threads that call MPI.
static inline struct World begin_threaded_program(int* argc, char*** argv) {
  struct World world;
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  CHECK(provided == MPI_THREAD_MULTIPLE);
  return world;
}

static inline int end_program(struct World world) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (world.rank == 0) printf("passed\n");
  MPI_Finalize();
  return 0;
}

// A value that depends on sender, message and position.
static inline int pattern(int rank, int message, int position) {
  return (rank * 131 + message) * 65537 + position;
}
