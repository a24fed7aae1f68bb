/* Calls a library in Go between calls of MPI. */
#include <mpi.h>
#include <stdio.h>

#include "libwaits.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const double slept_ms = Sleep(4, 100 * (rank % 2 + 1));
  printf("%d: day %ld, slept %.3f ms, at %.3f ms\n", rank, (long)Day(), slept_ms, MPI_Wtime() * 1e3);
  for (int i = 0; i < 3; ++i) {
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    const int exchanged = Exchange(10);
    printf("%d: %d %d at %.3f ms\n", rank, sum, exchanged, MPI_Wtime() * 1e3);
  }
  printf("%d: ends at %.9f s\n", rank, MPI_Wtime());
  MPI_Finalize();
  return 0;
}
