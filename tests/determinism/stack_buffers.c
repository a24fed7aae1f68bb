// Messages from and to buffers on the stack, whose offsets within their pages matter for a card with a TLB.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { rounds = 20, buffers = 3, largest = 12345 };

int main(int argc, char** argv) {
  static const int lengths[buffers] = {9000, 7000, largest};
  char memory[buffers][largest];
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  memset(memory, rank, sizeof memory);
  for (int round = 0; round < rounds; ++round) {
    char* buffer = memory[round % buffers];
    const int length = lengths[round % buffers];
    if (rank % 2 == 0) {
      MPI_Send(buffer, length, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD);
    } else {
      MPI_Recv(buffer, length, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  if (rank == 1) printf("%d %.9f\n", memory[2][largest - 1], MPI_Wtime());
  MPI_Finalize();
  return 0;
}
