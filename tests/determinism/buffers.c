// Prints where buffers of the stack and of the heap lie within their pages, and how long messages from and to
// them take on a card that translates addresses.
#include <alloca.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { steps = 40, most = 65536, page = 4096 };

static unsigned offset(const void* address) {
  return (unsigned)((uintptr_t)address % page);
}

static void exchange(int rank, char* buffer, int bytes) {
  const double begin = MPI_Wtime();
  if (rank == 0) {
    MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  }
  printf("rank %d: %d bytes at %u: %.12f s\n", rank, bytes, offset(buffer), MPI_Wtime() - begin);
}

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int step = 0; step < steps; ++step) {
    const int bytes = most - 1000 * step;
    char* on_the_stack = alloca((size_t)bytes + 100);
    memset(on_the_stack, rank, (size_t)bytes);
    exchange(rank, on_the_stack, bytes);
    char* on_the_heap = calloc(1, (size_t)(100 + 777 * step));  // not freed: each at another place
    exchange(rank, on_the_heap, 100 + 777 * step);
  }
  MPI_Finalize();
  return 0;
}
