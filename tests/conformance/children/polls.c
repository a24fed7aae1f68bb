/* A rank sleeps 0.1 ms between two polls for the end of its child, which sleeps 1 ms and then computes. No
   sleep is cut short: nothing handles SIGCHLD. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void end_late(void) {
  const struct timespec length = {.tv_nsec = 1000000};
  nanosleep(&length, NULL);
  volatile double sum = 0;
  for (int i = 0; i < 3000000; ++i) sum += i;
  _exit(0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  for (int i = 0; i < 40; ++i) {
    const double began = MPI_Wtime();
    const pid_t child = fork();
    if (child == 0) end_late();
    int polls = 0;
    double waited = 0;
    while (waitpid(child, NULL, WNOHANG) == 0) {
      usleep(100);
      waited = MPI_Wtime() - began;
      ++polls;
    }
    printf("%d polls, %.2f us\n", polls, waited * 1e6);
  }
  MPI_Finalize();
  return 0;
}
