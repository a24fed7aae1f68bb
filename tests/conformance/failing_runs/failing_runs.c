// One program for every way in which a run can fail; the first argument selects it.
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "../c/check.h"

static void receive_from(int rank) {
  int value = 0;
  MPI_Recv(&value, 1, MPI_INT, rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void print_megabytes(int rank) {
  char line[128];
  memset(line, 'a' + rank % 26, sizeof line);
  line[sizeof line - 1] = '\n';
  for (int i = 0; i < 1 << 16; ++i) fwrite(line, 1, sizeof line, stdout);  // 8 MiB
}

int main(int argc, char** argv) {
  const char* failure = argc > 1 ? argv[1] : "";
  if (strcmp(failure, "no-mpi") == 0) return 0;
  if (strcmp(failure, "exit-before-init") == 0) return 5;
  const struct World world = begin_program(&argc, &argv);
  if (strcmp(failure, "silent") == 0) return MPI_Finalize();
  const int last = world.size - 1;
  printf("rank %d was here\n", world.rank);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(failure, "crash") == 0 && world.rank == last) raise(SIGSEGV);
  if (strcmp(failure, "killed") == 0 && world.rank == last) raise(SIGKILL);
  if (strcmp(failure, "exit") == 0 && world.rank == last) _exit(42);
  if (strcmp(failure, "abort") == 0 && world.rank == last) MPI_Abort(MPI_COMM_WORLD, 17);
  if (strcmp(failure, "abort-0") == 0 && world.rank == last) MPI_Abort(MPI_COMM_WORLD, 0);
  if (strcmp(failure, "fatal-error") == 0 && world.rank == last)
    MPI_Send(&last, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
  if (strcmp(failure, "sleeps-for-ever") == 0 && world.rank == last) sleep(4000000000U);
  if (strcmp(failure, "libc-abort") == 0 && world.rank == last) abort();
  if (strcmp(failure, "no-finalize") == 0 && world.rank == last) return 0;
  if (strcmp(failure, "nobody-finalizes") == 0) return 0;
  if (strcmp(failure, "output") == 0) print_megabytes(world.rank);
  if (strcmp(failure, "deadlock") == 0 && world.rank < 2) receive_from(1 - world.rank);
  if (strcmp(failure, "endless") == 0) {
    for (volatile int forever = 1; forever;) continue;
  }
  if (strcmp(failure, "endless-messages") == 0) {
    for (;;) MPI_Barrier(MPI_COMM_WORLD);
  }
  if (strcmp(failure, "status") == 0) {
    MPI_Finalize();
    return 9;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
