/* A rank starts its own program, with the MPI library, in three ways; the program sleeps for 100 us. Prints
 * the virtual time that each took in whole microseconds. */
#define _GNU_SOURCE
#include <mpi.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static void show(const char* way, double began_us, pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  printf("%s: %.0f us, %d\n", way, now_us() - began_us, WEXITSTATUS(status));
}

int main(int count, char** arguments) {
  if (count > 1) {
    const struct timespec duration = {.tv_nsec = 100000};
    return nanosleep(&duration, NULL);
  }
  char* const again[] = {arguments[0], "child", NULL};
  MPI_Init(&count, &arguments);
  double began_us = now_us();
  pid_t child = vfork();
  if (child == 0) {
    execv(arguments[0], again);
    _exit(127);
  }
  show("vfork", began_us, child);
  began_us = now_us();
  if (posix_spawn(&child, arguments[0], NULL, NULL, again, environ) != 0) return 1;
  show("posix_spawn", began_us, child);
  began_us = now_us();
  child = fork();
  if (child == 0) {
    execv(arguments[0], again);
    _exit(127);
  }
  show("fork", began_us, child);
  MPI_Finalize();
  return 0;
}
