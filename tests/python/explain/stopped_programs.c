/* Two ranks exchange messages for ever, until something stops them in the way that the first argument names.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { rounds = 100 };

int main(int argc, char** argv) {
  const char* way = argc > 1 ? argv[1] : "";
  int rank = 0;
  int value = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int round = 0;; ++round) {
    if (rank == 0) {
      MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    if (round == rounds - 1 && rank == 0) {
      puts("100 rounds");
      fflush(stdout);
    }
    if (round < rounds - 1 || rank == 0) continue;
    if (strcmp(way, "killed") == 0) raise(SIGKILL);
    if (strcmp(way, "exits") == 0) _exit(3);
    if (strcmp(way, "aborts") == 0) MPI_Abort(MPI_COMM_WORLD, 4);
    if (strcmp(way, "deadlock") == 0) MPI_Recv(&value, 1, MPI_INT, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}
