// Messages that arrive late and are received by calls that poll, and a rank that aborts the run on request.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 10; ++i) {
    int value = i;
    if (rank == 0) {
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Send(&value, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
    } else {
      MPI_Request request;
      int polls = 0;
      MPI_Irecv(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD, &request);
      for (int done = 0; !done; ++polls) {
        if (polls == 40) MPI_Barrier(MPI_COMM_WORLD);
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      }
      printf("%d polls, %.9f s\n", polls, MPI_Wtime());
    }
  }
  if (argc > 1 && strcmp(argv[1], "abort") == 0 && rank == 0) MPI_Abort(MPI_COMM_WORLD, 3);
  MPI_Finalize();
  return 0;
}
