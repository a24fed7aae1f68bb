// computes MILLIONS: the ranks compute side by side, that many million steps each, then pass a message
// around; three times.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { phases = 3, laps = 200 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long steps = (argc > 1 ? atol(argv[1]) : 1) * 1000000;
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double value = rank;
  long sum = 0;
  for (int phase = 0; phase < phases; ++phase) {
    for (long step = 0; step < steps; ++step) value = value * 0.999 + 1;
    for (long lap = 0; lap < laps; ++lap) {
      long token = lap;
      if (rank == 0) MPI_Send(&token, 1, MPI_LONG, 1 % size, phase, MPI_COMM_WORLD);
      MPI_Recv(&token, 1, MPI_LONG, MPI_ANY_SOURCE, phase, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      ++token;
      if (rank != 0) MPI_Send(&token, 1, MPI_LONG, (rank + 1) % size, phase, MPI_COMM_WORLD);
      sum += token;
    }
  }
  printf("rank %d: %.6f, %ld at %.9f s\n", rank, value, sum, MPI_Wtime());
  MPI_Finalize();
  return 0;
}
