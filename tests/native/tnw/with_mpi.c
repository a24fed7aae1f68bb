/* A sum around a ring by the TNW, while MPI's messages are under way to the same neighbours. */
#include <mpi.h>
#include <stdio.h>
#include <tnw.h>

int main(int argc, char** argv) {
  int rank = 0, size = 0, by_ring = 0, by_mpi = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (tnw_open() != TNW_OK) return 1;
  static char block[100000];
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Request requests[2];
  MPI_Irecv(block, sizeof block / 2, MPI_CHAR, before, 7, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(block + sizeof block / 2, sizeof block / 2, MPI_CHAR, next, 7, MPI_COMM_WORLD, &requests[1]);
  for (int passing = rank, step = 0; step < size; ++step) {
    by_ring += passing;
    int taken = 0;
    if (tnw_credit(TNW_X_MINUS, 0, &taken, sizeof taken) != TNW_OK) return 1;
    if (tnw_put(TNW_X_PLUS, 0, &passing, sizeof passing) != TNW_OK) return 1;
    if (tnw_wait(TNW_X_MINUS, 0, NULL) != TNW_OK) return 1;
    passing = taken;
  }
  MPI_Allreduce(&rank, &by_mpi, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  printf("sum of ranks by the ring: %d, by MPI: %d\n", by_ring, by_mpi);
  if (tnw_close() != TNW_OK || tnw_open() != TNW_OK) return 1;
  MPI_Finalize();
  if (tnw_put(TNW_X_PLUS, 0, block, 1) != TNW_ENDED || tnw_close() != TNW_ENDED) return 1;
  return tnw_open() == TNW_ENDED ? 0 : 1;
}
