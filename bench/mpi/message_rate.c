// message_rate: traffic to measure how fast the simulator itself is; run and timed by `apenet perf mpi`.
//
//   message_rate pingpong REPETITIONS   2 ranks, 8 bytes back and forth
//   message_rate halo REPETITIONS       all ranks on a periodic 3D grid, 4 KiB to each of 6 neighbours
//
// Prints the number of messages sent by all ranks. It reads no clock, because under the simulator every clock
// is virtual.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ping_bytes = 8, face_bytes = 4096, dimensions = 3, neighbours = 2 * dimensions, exit_bad_input = 2 };

static long exchange_pings(long repetitions) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char ball[ping_bytes] = {0};
  for (long i = 0; i < repetitions && rank < 2; ++i) {
    if (rank == 0) MPI_Send(ball, ping_bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(ball, ping_bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(ball, ping_bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
  }
  return rank < 2 ? repetitions : 0;
}

static long exchange_halos(long repetitions) {
  static char outgoing[neighbours][face_bytes];
  static char incoming[neighbours][face_bytes];
  int size = 0;
  int dims[dimensions] = {0};
  const int periodic[dimensions] = {1, 1, 1};
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, dimensions, dims);
  MPI_Comm grid = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, dimensions, dims, periodic, 0, &grid);
  int towards[neighbours];
  for (int dimension = 0; dimension < dimensions; ++dimension)
    MPI_Cart_shift(grid, dimension, 1, &towards[2 * dimension], &towards[2 * dimension + 1]);

  for (long i = 0; i < repetitions; ++i) {
    MPI_Request requests[2 * neighbours];
    // A message in direction d comes from the neighbour on the opposite side, d ^ 1.
    for (int d = 0; d < neighbours; ++d)
      MPI_Irecv(incoming[d], face_bytes, MPI_CHAR, towards[d ^ 1], d, grid, &requests[d]);
    for (int d = 0; d < neighbours; ++d)
      MPI_Isend(outgoing[d], face_bytes, MPI_CHAR, towards[d], d, grid, &requests[neighbours + d]);
    MPI_Waitall(2 * neighbours, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Comm_free(&grid);
  return repetitions * neighbours;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int is_pingpong = argc == 3 && strcmp(argv[1], "pingpong") == 0 && size >= 2;
  const int is_halo = argc == 3 && strcmp(argv[1], "halo") == 0;
  const long repetitions = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
  if ((!is_pingpong && !is_halo) || repetitions < 1) {
    if (rank == 0)
      fprintf(stderr, "usage: message_rate pingpong|halo REPETITIONS, at least 2 ranks and 1 repetition\n");
    MPI_Finalize();
    return exit_bad_input;
  }
  const long mine = is_pingpong ? exchange_pings(repetitions) : exchange_halos(repetitions);
  long all = 0;
  MPI_Reduce(&mine, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("messages %ld\n", all);
  MPI_Finalize();
  return 0;
}
