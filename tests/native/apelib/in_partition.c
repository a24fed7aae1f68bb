// What each rank sees of the nodes that it is on, and the time of a halo exchange among them, by MPI.
#include <apelib.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 20000, DIRECTIONS = 6, ROUNDS = 3 };

static void check(int code) {
  if (code == APE_OK) return;
  fprintf(stderr, "in_partition: %s\n", ape_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  int rank = 0;
  int size = 0;
  int count = 0;
  int length = 0;
  int dims[APE_MAX_DIMS];
  int at[APE_MAX_DIMS];
  char name[MPI_MAX_PROCESSOR_NAME];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check(ape_init());
  check(ape_dims(&count, dims));
  check(ape_coords(rank, at));
  MPI_Get_processor_name(name, &length);

  static char out[DIRECTIONS][BYTES];
  static char in[DIRECTIONS][BYTES];
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int round = 0; round < ROUNDS; ++round) {
    MPI_Request requests[2 * DIRECTIONS];
    for (int d = 0; d < DIRECTIONS; ++d) {
      int neighbor = 0;
      check(ape_neighbor(d, &neighbor));
      MPI_Irecv(in[d], BYTES, MPI_BYTE, neighbor, d ^ 1, MPI_COMM_WORLD, &requests[d]);
      MPI_Isend(out[d], BYTES, MPI_BYTE, neighbor, d, MPI_COMM_WORLD, &requests[DIRECTIONS + d]);
    }
    MPI_Waitall(2 * DIRECTIONS, requests, MPI_STATUSES_IGNORE);
  }
  const double us = (MPI_Wtime() - start) * 1e6;
  for (int shown = 0; shown < size; ++shown) {
    if (shown == rank) {
      printf("%d %s %dx%dx%d (%d,%d,%d) %.6f\n", rank, name, dims[0], dims[1], dims[2], at[0], at[1], at[2],
             us);
      fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  check(ape_finalize());
  MPI_Finalize();
  return 0;
}
