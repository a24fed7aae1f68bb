/* A timer ends a read every 7 ms, beside a child that writes every 50 ms: what was read, how often the read
 * was ended, how often the handler ran, and the virtual time in ms. */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t handled;

static void handle(int signal) {
  (void)signal;
  ++handled;
}

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  const double begin_s = MPI_Wtime();
  const struct sigaction action = {.sa_handler = handle};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {.it_interval.tv_usec = 7000, .it_value.tv_usec = 7000};
  const struct itimerval never = {.it_value.tv_usec = 0};
  int files[2];
  if (pipe(files) != 0) return 1;
  if (fork() == 0) {
    for (int i = 0; i < 3; ++i) {
      usleep(50000);
      if (write(files[1], "x", 1) != 1) _exit(1);
    }
    _exit(0);
  }
  close(files[1]);
  setitimer(ITIMER_REAL, &often, NULL);
  int bytes = 0;
  int ended = 0;
  char byte = 0;
  for (ssize_t result = 1; result != 0; result = read(files[0], &byte, 1)) {
    bytes += result > 0;
    ended += result < 0;
  }
  setitimer(ITIMER_REAL, &never, NULL);
  printf("%d %d %d %.1f\n", bytes - 1, ended, (int)handled, 1e3 * (MPI_Wtime() - begin_s));
  wait(NULL);
  MPI_Finalize();
  return 0;
}
