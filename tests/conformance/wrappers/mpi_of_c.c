// MPI's functions for the program in Fortran.
#include <mpi.h>
#include <stddef.h>

void begin(int* rank) {
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, rank);
}
void synchronise(void) {
  MPI_Barrier(MPI_COMM_WORLD);
}
void finish(void) {
  MPI_Finalize();
}
double mpi_clock(void) {
  return MPI_Wtime();
}
