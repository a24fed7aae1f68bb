// Each rank sends to its right neighbour and then receives from its left one: exercise 4 of classroom.md.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int bytes = argc > 1 ? atoi(argv[1]) : 8;
  char* out = calloc(bytes, 1);
  char* in = calloc(bytes, 1);
  const int right = (rank + 1) % ranks;
  const int left = (rank + ranks - 1) % ranks;
  const double start = MPI_Wtime();
  MPI_Send(out, bytes, MPI_BYTE, right, 0, MPI_COMM_WORLD);
  MPI_Recv(in, bytes, MPI_BYTE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0) printf("%d bytes around: %.2f us\n", bytes, (MPI_Wtime() - start) * 1e6);
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
