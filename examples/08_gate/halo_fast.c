// A halo exchange on a ring of ranks: each sends its borders to both neighbours, some times over.
//
// This is the fast version: all four messages of a rank are under way at once.
#include <mpi.h>
#include <stdlib.h>

enum { STEPS = 10, DOUBLES = 1024 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  double* borders = calloc(4 * DOUBLES, sizeof *borders);
  for (int step = 0; step < STEPS; ++step) {
    MPI_Request requests[4];
    MPI_Irecv(borders + 2 * DOUBLES, DOUBLES, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(borders + 3 * DOUBLES, DOUBLES, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(borders, DOUBLES, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(borders + DOUBLES, DOUBLES, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  }
  free(borders);
  MPI_Finalize();
  return 0;
}
