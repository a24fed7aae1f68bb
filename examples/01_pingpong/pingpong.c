// Ping-pong: a message goes to the other rank and back. As in the papers, the time is half a round trip.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { repetitions = 20, largest_bytes = 1 << 20 };

// Sends `bytes` back and forth. Returns on each rank when its last message is complete.
static void play(int rank, char* ball, int bytes) {
  for (int i = 0; i < repetitions; ++i) {
    if (rank == 0) {
      MPI_Send(ball, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(ball, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(ball, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(ball, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size < 2) {
    fprintf(stderr, "pingpong: expected at least 2 ranks, got %d\n", size);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }

  char* ball = calloc(largest_bytes, 1);
  if (rank == 0) printf("# %-10s %14s %20s\n", "Size [B]", "Latency [us]", "Bandwidth [MiB/s]");
  for (int bytes = 16; rank < 2 && bytes <= largest_bytes; bytes *= 16) {
    play(rank, ball, bytes);  // not measured: the first round includes the set-up in the libraries
    const double begin_s = MPI_Wtime();
    play(rank, ball, bytes);
    const double latency_s = (MPI_Wtime() - begin_s) / (2 * repetitions);
    if (rank == 0) printf("%-12d %14.2f %20.1f\n", bytes, latency_s * 1e6, bytes / latency_s / (1 << 20));
  }
  free(ball);
  MPI_Finalize();
  return 0;
}
