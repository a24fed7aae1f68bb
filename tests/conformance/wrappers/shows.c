// Prints what a program sees only with the shim: virtual date, node and time slept.
#include <mpi.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char host[100];
  gethostname(host, sizeof host);
  const long date = (long)time(NULL);
  const double before = MPI_Wtime();
  usleep(500000);
  MPI_Barrier(MPI_COMM_WORLD);
  printf("%d %ld %s %.3f\n", rank, date, host, MPI_Wtime() - before);
  MPI_Finalize();
  return 0;
}
