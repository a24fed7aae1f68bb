// Exchanges memory of GPUs around a ring: once with device pointers in MPI's calls, and once through buffers
// of the host, with the program's own copies.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "apenet_gpu.h"

enum { largest_bytes = 1 << 20, rounds = 10 };

struct Buffers {
  char* gpu_outgoing;
  char* gpu_incoming;
  char* outgoing;
  char* incoming;
};

static void exchange(const struct Buffers* buffers, int bytes, int left, int right) {
  MPI_Sendrecv(buffers->gpu_outgoing, bytes, MPI_CHAR, right, 0, buffers->gpu_incoming, bytes, MPI_CHAR, left,
               0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void exchange_staged(const struct Buffers* buffers, int bytes, int left, int right) {
  ape_gpu_memcpy(buffers->outgoing, buffers->gpu_outgoing, (size_t)bytes);
  MPI_Sendrecv(buffers->outgoing, bytes, MPI_CHAR, right, 0, buffers->incoming, bytes, MPI_CHAR, left, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  ape_gpu_memcpy(buffers->gpu_incoming, buffers->incoming, (size_t)bytes);
}

static double mean_us(void (*run)(const struct Buffers*, int, int, int), const struct Buffers* buffers,
                      int bytes, int left, int right) {
  run(buffers, bytes, left, right);  // not measured: the first one includes set-up
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin_s = MPI_Wtime();
  for (int i = 0; i < rounds; ++i) run(buffers, bytes, left, right);
  return (MPI_Wtime() - begin_s) * 1e6 / rounds;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (ape_gpu_count() == 0) {
    if (rank == 0) fprintf(stderr, "exchange: expected a machine with a GPU\n");
    MPI_Finalize();
    return 2;
  }
  const struct Buffers buffers = {ape_gpu_malloc(largest_bytes), ape_gpu_malloc(largest_bytes),
                                  calloc(largest_bytes, 1), calloc(largest_bytes, 1)};
  const int right = (rank + 1) % size;
  const int left = (rank + size - 1) % size;
  if (rank == 0) printf("# Size [B]   device pointers [us]   own copies [us]\n");
  for (int bytes = 1024; bytes <= largest_bytes; bytes *= 32) {
    const double direct_us = mean_us(exchange, &buffers, bytes, left, right);
    const double staged_us = mean_us(exchange_staged, &buffers, bytes, left, right);
    if (rank == 0) printf("%-10d %22.2f %17.2f\n", bytes, direct_us, staged_us);
  }
  ape_gpu_free(buffers.gpu_outgoing);
  ape_gpu_free(buffers.gpu_incoming);
  free(buffers.outgoing);
  free(buffers.incoming);
  MPI_Finalize();
  return 0;
}
