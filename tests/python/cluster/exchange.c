// Ranks in a ring send to the next one and receive from the one before, round after round.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char** words) {
  MPI_Init(&count, &words);
  int ranks, rank;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int rounds = atoi(words[1]), bytes = atoi(words[2]);
  char how = count > 3 ? words[3][0] : 'g';  // exits, deadlocks, or goes on
  char* out = calloc(1, bytes);
  char* in = calloc(1, bytes);
  double began = MPI_Wtime();
  for (int round = 0; round < rounds; round++) {
    MPI_Sendrecv(out, bytes, MPI_CHAR, (rank + 1) % ranks, 0, in, bytes, MPI_CHAR, (rank + ranks - 1) % ranks,
                 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (round == 2 && rank == 1 && how == 'e') exit(3);
  }
  if (how == 'd') MPI_Recv(in, bytes, MPI_CHAR, (rank + 1) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  printf("rank %d of %d: %.9f %.9f\n", rank, ranks, began, MPI_Wtime() - began);
  MPI_Finalize();
  return 0;
}
