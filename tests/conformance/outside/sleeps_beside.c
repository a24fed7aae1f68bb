// A rank sleeps for an hour in a thousand sleeps, while a process that it has started does what the argument
// says: "idle" waits for the rank for ever, "ticks" sleeps again and again in the host's time, "none": there
// is no such process. Prints the time that the rank slept.
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { sleeps = 1000 };

// Returns when the process sleeps. Another process checks: what the rank itself checks would count.
static void await_sleep_of(pid_t process) {
  const pid_t watcher = fork();
  if (watcher == 0) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    for (char state = 0; state != 'S';) {
      FILE* stat = fopen(path, "r");
      if (stat == NULL || fscanf(stat, "%*d (%*[^)]) %c", &state) != 1) _exit(1);
      fclose(stat);
    }
    _exit(0);
  }
  int status = 0;
  if (waitpid(watcher, &status, 0) != watcher || status != 0) _exit(3);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ends[2];
  if (argc != 2 || pipe(ends) != 0) return 2;
  pid_t child = 0;
  if (strcmp(argv[1], "none") != 0) child = fork();
  if (strcmp(argv[1], "none") != 0 && child == 0) {
    char byte;
    close(ends[1]);
    if (strcmp(argv[1], "ticks") == 0) {
      setenv("APENET_OUTSIDE", "1", 1);
      execlp("sh", "sh", "-c", "while :; do sleep 0.001; done", (char*)NULL);
    }
    _exit(read(ends[0], &byte, 1) == 1 ? 0 : 1);
  }
  if (strcmp(argv[1], "idle") == 0) await_sleep_of(child);
  const double begin_s = MPI_Wtime();
  const struct timespec pause = {.tv_sec = 3, .tv_nsec = 600000000};
  for (int i = 0; i < sleeps; ++i) nanosleep(&pause, NULL);
  printf("%.3f s\n", MPI_Wtime() - begin_s);
  if (child > 0) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
  }
  MPI_Finalize();
  return 0;
}
