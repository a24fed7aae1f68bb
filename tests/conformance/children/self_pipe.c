/* A handler writes to a pipe of the rank, which its children hold, too: for each signal, when a wait for that
 * pipe ends, in ms, and what it returns in the end. The child sends a signal, or ends, after 100 ms. */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int files[2];

static void handle(int signal) {
  (void)signal;
  if (write(files[1], "x", 1) != 1) _exit(1);
}

static void run(const char* name, int signal) {
  if (pipe(files) != 0) _exit(2);
  const struct sigaction action = {.sa_handler = handle};
  struct sigaction usual;
  sigaction(signal, &action, &usual);
  const double begin_s = MPI_Wtime();
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child == 0) {
    const struct timespec duration = {.tv_sec = 0, .tv_nsec = 100000000};
    nanosleep(&duration, NULL);
    if (signal != SIGCHLD) {
      kill(self, signal);
      nanosleep(&duration, NULL);
    }
    _exit(0);
  }
  fd_set set;
  FD_ZERO(&set);
  FD_SET(files[0], &set);
  struct timeval limit = {.tv_sec = 2, .tv_usec = 0};
  int result = 0;
  // The set stays as it is if a signal ends the call.
  do result = select(files[0] + 1, &set, NULL, NULL, &limit);
  while (result < 0 && errno == EINTR);
  printf("%s: %.1f ms, %d\n", name, 1e3 * (MPI_Wtime() - begin_s), result);
  sigaction(signal, &usual, NULL);
  waitpid(child, NULL, 0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  run("its end", SIGCHLD);
  run("its signal", SIGUSR1);
  MPI_Finalize();
  return 0;
}
