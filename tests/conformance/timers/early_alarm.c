// An alarm that is set before MPI_Init ends a wait before MPI_Init: each rank waits in another call. With
// `child`, a process that it has started does. With `restarts`, the wait goes on after the alarm, for ever.
#define _DEFAULT_SOURCE
#include <errno.h>
#include <mpi.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_alarm(int number) {
  (void)number;
}

static int is_interrupted(int rank) {
  int files[2];
  char byte = 0;
  sem_t semaphore;
  if (pipe(files) != 0 || sem_init(&semaphore, 0, 0) != 0) return 0;
  struct pollfd file = {.fd = files[0], .events = POLLIN};
  const struct itimerval in_three_seconds = {.it_value = {.tv_sec = 3}};
  if (rank == 0) alarm(3);
  if (rank != 0) setitimer(ITIMER_REAL, &in_three_seconds, NULL);
  const long result = rank == 0   ? read(files[0], &byte, 1)
                      : rank == 1 ? sem_wait(&semaphore)
                                  : poll(&file, 1, -1);
  return result == -1 && errno == EINTR;
}

int main(int argc, char** argv) {
  const char* const mode = argc > 1 ? argv[1] : "";
  const int restarts = strcmp(mode, "restarts") == 0;
  struct sigaction handling = {.sa_handler = on_alarm, .sa_flags = restarts ? SA_RESTART : 0};
  sigaction(SIGALRM, &handling, NULL);
  const int rank = atoi(getenv("PMI_RANK"));
  const pid_t child = strcmp(mode, "child") == 0 ? fork() : -1;
  if (child == 0) _exit(is_interrupted(rank));
  int status = 0;
  const int is_right =
      child < 0 ? is_interrupted(rank) : waitpid(child, &status, 0) == child && WEXITSTATUS(status);
  MPI_Init(&argc, &argv);
  printf("%s\n", is_right ? "interrupted" : "not interrupted");
  MPI_Finalize();
  return 0;
}
