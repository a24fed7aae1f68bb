// Behaves like a program called with wrong arguments: rank 0 prints the usage, and every rank exits.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  const int before_init = argc > 1 && strcmp(argv[1], "before-init") == 0;
  const char* launcher_rank = getenv("PMI_RANK");
  int rank = launcher_rank != NULL ? atoi(launcher_rank) : 0;
  if (!before_init) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  }
  if (rank == 0) printf("usage: program SIZE\n");
  exit(rank == 5 ? 3 : 1);
}
