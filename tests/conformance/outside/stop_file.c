// Two ranks work in steps, check whether they should stop, and sleep. A check between two steps of work is no
// wait.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int by_stat = strcmp(argv[1], "stat") == 0;
  const double began_s = MPI_Wtime();
  int stops = 0;
  for (int step = 0; step < 1000 && !stops; ++step) {
    struct stat status;
    stops = by_stat ? stat(argv[2], &status) == 0 : access(argv[2], F_OK) == 0;
    MPI_Allreduce(MPI_IN_PLACE, &stops, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    sleep(1);
  }
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("%d, %.0f s\n", stops, MPI_Wtime() - began_s);
  MPI_Finalize();
  return 0;
}
