// Every rank prints in every phase of its life (before MPI, in virtual time, after MPI_Finalize): complete
// lines and parts of lines, on both streams. The order of the forwarded output must not depend on the host.
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static void say(int rank, const char* phase, int round) {
  printf("rank %d %s %d\n", rank, phase, round);
  fflush(stdout);
  fprintf(stderr, "rank %d %s %d on stderr\n", rank, phase, round);
}

int main(int argc, char** argv) {
  printf("before MPI\n");
  fflush(stdout);
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  say(rank, "begins", 0);
  for (int round = 0; round < 20; ++round) {
    int token = rank;
    const int right = (rank + 1 + round % (size - 1)) % size;
    const int left = (rank + size - 1 - round % (size - 1)) % size;
    MPI_Sendrecv_replace(&token, 1, MPI_INT, right, 0, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if ((rank + round) % 3 == 0) say(rank, "has", token);
    if (rank == round % size) usleep(10);
  }
  MPI_Finalize();
  say(rank, "finalized", 0);
  usleep((useconds_t)(size - rank) * 1000);  // in the host's time: the last rank ends first
  say(rank, "ends", 0);
  printf("rank %d ends without an end of line ", rank);
  return 0;
}
