// Runs that fail while their ranks are at different points in the host; the first argument selects how.
#define _DEFAULT_SOURCE  // usleep
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say(const char* what, int rank, int round) {
  printf("rank %d %s %d\n", rank, what, round);
  fflush(stdout);
}

// Computing takes host time that depends on the rank's number.
static void compute(int rank) {
  volatile double sum = 0;
  for (long i = 0; i < 2000000L * (rank + 1); ++i) sum += (double)i;
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  const char* early = getenv("APENET_RANK");
  if (strcmp(how, "before-mpi") == 0 && early != NULL && strcmp(early, "1") == 0) return 3;
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  printf("rank %d begins\n", rank);  // stays in the buffer until the end, unless something else is printed
  if (strcmp(how, "crash-in-a-ring") == 0) {
    for (int round = 0;; ++round) {
      int token = rank;
      MPI_Sendrecv_replace(&token, 1, MPI_INT, (rank + 1) % size, 0, (rank + size - 1) % size, 0,
                           MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      say("has done round", rank, round);
      if (round == 5 && rank == size / 2) raise(SIGKILL);
    }
  }
  if (strcmp(how, "crash-beside-work") == 0) {
    if (rank == 1) raise(SIGKILL);
    compute(rank);
    say("has worked", rank, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    say("is past the barrier", rank, 0);
  }
  if (strcmp(how, "aborts") == 0) MPI_Abort(MPI_COMM_WORLD, 3 + rank);
  if (strcmp(how, "no-finalize") == 0) {
    if (rank % 3 == 1) return 0;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  for (int line = 0; line < 20; ++line) {
    say("prints on", rank, line);
    usleep((useconds_t)(100 * (size - rank)));
  }
  return rank == 3 ? 5 : 0;
}
