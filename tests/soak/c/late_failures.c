// Ranks fail one after another in virtual time: the first one decides, in whatever order the host ran them.
#define _DEFAULT_SOURCE  // usleep
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  // Rank size/2 fails first; its successors follow at intervals of a microsecond.
  const int turn = (rank + size - size / 2) % size;
  usleep((useconds_t)(10 + turn));
  printf("rank %d exits with %d\n", rank, 20 + rank);
  fflush(stdout);
  exit(20 + rank);
}
