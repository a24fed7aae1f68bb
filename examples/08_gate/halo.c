// A halo exchange on a ring of ranks: each sends its borders to both neighbours, some times over.
//
// This is the slow version: a rank receives before it sends, so a border travels around the ring one rank at
// a time.
#include <mpi.h>
#include <stdlib.h>

enum { STEPS = 10, DOUBLES = 1024 };

static void exchange(const double* border, double* halo, int from, int to, int is_first) {
  if (is_first) MPI_Send(border, DOUBLES, MPI_DOUBLE, to, 0, MPI_COMM_WORLD);
  MPI_Recv(halo, DOUBLES, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (!is_first) MPI_Send(border, DOUBLES, MPI_DOUBLE, to, 0, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  double* borders = calloc(4 * DOUBLES, sizeof *borders);
  for (int step = 0; step < STEPS; ++step) {
    exchange(borders, borders + 2 * DOUBLES, left, right, rank == 0);
    exchange(borders + DOUBLES, borders + 3 * DOUBLES, right, left, rank == 0);
  }
  free(borders);
  MPI_Finalize();
  return 0;
}
