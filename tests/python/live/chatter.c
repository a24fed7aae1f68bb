// All ranks exchange messages, round after round; rank 0 says now and then how late it is.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char** words) {
  MPI_Init(&count, &words);
  int ranks, rank;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int rounds = atoi(words[1]), bytes = atoi(words[2]);
  char* out = calloc(ranks, bytes);
  char* in = calloc(ranks, bytes);
  for (int round = 0; round < rounds; round++) {
    MPI_Alltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD);
    if (rank == 0 && round % 20 == 0) {
      printf("round %d: %.9f\n", round, MPI_Wtime());
      fflush(stdout);
    }
  }
  MPI_Finalize();
  return 0;
}
