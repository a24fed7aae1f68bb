/* A process outside the ranks sends rank 1 a signal while that sleeps for 1000 s of virtual time. Rank 0
   waits in the host until the handler has run, and goes on for a second of virtual time after it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t handled;
static const char* handled_mark;

static void handle(int number) {
  const int error = errno;
  handled = number;
  close(open(handled_mark, O_CREAT | O_WRONLY, 0600));
  errno = error;
}

/* As the host shows it. */
static char state_of(int process) {
  char path[64];
  char state = '?';
  snprintf(path, sizeof path, "/proc/%d/stat", process);
  FILE* const file = fopen(path, "r");
  if (file == NULL) return state;
  if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = '?';
  fclose(file);
  return state;
}

/* It has left the mark, and sleeps. */
static void await_sleep(int process, const char* mark) {
  const struct timespec moment = {.tv_nsec = 1000000};
  while (access(mark, F_OK) != 0) nanosleep(&moment, NULL);
  for (int polls = 0; polls < 1000; ++polls) {
    if (state_of(process) != 'S') polls = 0;
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  handled_mark = argv[2];
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* A sleep is interrupted even so. */
  const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  int process = getpid();
  MPI_Bcast(&process, 1, MPI_INT, 1, MPI_COMM_WORLD);
  if (rank == 0) {
    char command[64];
    snprintf(command, sizeof command, "kill -USR1 %d", process);
    await_sleep(process, argv[1]);
    if (system(command) != 0) return 2;
    await_sleep(process, handled_mark);
    const struct timespec second = {.tv_sec = 1};
    nanosleep(&second, NULL);
  } else {
    const struct timespec length = {.tv_sec = 1000};
    struct timespec left = {0};
    const double began = MPI_Wtime();
    fclose(fopen(argv[1], "w"));
    const int result = nanosleep(&length, &left);
    const double slept = MPI_Wtime() - began;
    const double together = slept + (double)left.tv_sec + (double)left.tv_nsec * 1e-9;
    printf("%d %s, handled %d, early %d, sum %.3f\n", result, errno == EINTR ? "EINTR" : strerror(errno),
           handled == SIGUSR1, slept < 500, together);
  }
  MPI_Finalize();
  return 0;
}
