// Rank 0 waits for a process that it has started, and polls for its end each millisecond. The others exchange
// messages, and wait for rank 0 at the end. Prints whether rank 0 saw the end in time.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { most_polls = 100000, exchanges = 200 };

int main(int argc, char** argv) {
  int rank = 0;
  int size = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm others;
  MPI_Comm_split(MPI_COMM_WORLD, rank != 0, rank, &others);
  int polls = 0;
  if (rank == 0) {
    const pid_t child = fork();
    if (child == 0) {
      execlp("sleep", "sleep", "0.05", NULL);
      _exit(1);
    }
    for (; polls < most_polls && waitpid(child, NULL, WNOHANG) == 0; ++polls) usleep(1000);
  } else {
    for (int i = 0; i < exchanges; ++i) {
      usleep(100);
      MPI_Barrier(others);
    }
  }
  MPI_Bcast(&polls, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == size - 1) printf("%s\n", polls < most_polls ? "ended" : "gave up");
  MPI_Comm_free(&others);
  MPI_Finalize();
  return 0;
}
