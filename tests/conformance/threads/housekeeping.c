// Each rank waits for a message that never comes, beside a thread that sleeps again and again. The argument:
// how long at a time, in seconds, or "once": for an hour, after which it sends the message.
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank;
static int sends_once;

static void* keep_house(void* period_s) {
  const double seconds = *(const double*)period_s;
  const time_t whole_s = (time_t)seconds;
  const struct timespec period = {.tv_sec = whole_s, .tv_nsec = (long)((seconds - (double)whole_s) * 1e9)};
  if (sends_once && rank == 0) {
    sleep(3600);
    for (int to = 0; to < 2; ++to) MPI_Send(&rank, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
  }
  for (;;) nanosleep(&period, NULL);
  return period_s;
}

int main(int argc, char** argv) {
  int provided = 0;
  int value = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 2 || provided != MPI_THREAD_MULTIPLE) return 2;
  sends_once = strcmp(argv[1], "once") == 0;
  double period_s = sends_once ? 0.1 : atof(argv[1]);
  pthread_t thread;
  pthread_create(&thread, NULL, keep_house, &period_s);
  MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  printf("%.0f s\n", MPI_Wtime());
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
