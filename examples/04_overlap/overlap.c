// Tests whether communication continues while the program computes. The work is declared, so the result
// repeats exactly.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "apenet_compute.h"

enum { largest_bytes = 1 << 20 };

// The duration of an exchange with `work_us` of computation between start and completion.
static double exchange_us(int partner, char* outgoing, char* incoming, int bytes, double work_us) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin_s = MPI_Wtime();
  MPI_Request requests[2];
  MPI_Irecv(incoming, bytes, MPI_CHAR, partner, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(outgoing, bytes, MPI_CHAR, partner, 0, MPI_COMM_WORLD, &requests[1]);
  ape_compute_seconds(work_us * 1e-6);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  return (MPI_Wtime() - begin_s) * 1e6;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size % 2 != 0) {
    fprintf(stderr, "overlap: expected an even number of ranks, got %d\n", size);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  char* outgoing = calloc(largest_bytes, 1);
  char* incoming = calloc(largest_bytes, 1);
  if (rank == 0) printf("# Size [B]   alone [us]   work [us]   both [us]   hidden\n");
  for (int bytes = 1024; bytes <= largest_bytes; bytes *= 32) {
    exchange_us(rank ^ 1, outgoing, incoming, bytes, 0);  // not measured: the first one includes set-up
    const double alone_us = exchange_us(rank ^ 1, outgoing, incoming, bytes, 0);
    const double both_us = exchange_us(rank ^ 1, outgoing, incoming, bytes, alone_us);
    const double hidden = (2 * alone_us - both_us) / alone_us;
    if (rank == 0)
      printf("%-10d %12.2f %11.2f %11.2f %7.0f%%\n", bytes, alone_us, alone_us, both_us, 100 * hidden);
  }
  free(outgoing);
  free(incoming);
  MPI_Finalize();
  return 0;
}
