// Calls a C library that dlmopen() has loaded into a namespace of its own. A line: what, its result, and how
// much of virtual time has passed since the beginning, in milliseconds. With an argument: only its system(),
// whose shell is a process that this C library starts itself.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void* library;
static double begin_s;

static void* find(const char* name) {
  return dlsym(library, name);
}

static void say(const char* what, long result) {
  printf("%s %ld %ld\n", what, result, (long)((MPI_Wtime() - begin_s) * 1e3));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  library = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
  if (argc > 1) {
    int (*system_there)(const char*) = (int (*)(const char*))find("system");
    printf("%d\n", WEXITSTATUS(system_there("exit 5")));
    MPI_Finalize();
    return 0;
  }
  int (*usleep_there)(unsigned) = (int (*)(unsigned))find("usleep");
  int (*nanosleep_there)(const struct timespec*, struct timespec*) =
      (int (*)(const struct timespec*, struct timespec*))find("nanosleep");
  unsigned (*sleep_there)(unsigned) = (unsigned (*)(unsigned))find("sleep");
  int (*poll_there)(struct pollfd*, nfds_t, int) = (int (*)(struct pollfd*, nfds_t, int))find("poll");
  int (*clock_there)(clockid_t, struct timespec*) =
      (int (*)(clockid_t, struct timespec*))find("clock_gettime");
  time_t (*time_there)(time_t*) = (time_t(*)(time_t*))find("time");
  int (*name_there)(char*, size_t) = (int (*)(char*, size_t))find("gethostname");
  begin_s = MPI_Wtime();
  struct timespec before, now;
  clock_there(CLOCK_MONOTONIC, &before);
  say("usleep", usleep_there(200000));
  const struct timespec tenth = {.tv_nsec = 100000000};
  say("nanosleep", nanosleep_there(&tenth, NULL));
  say("sleep", (long)sleep_there(1));
  say("poll", poll_there(NULL, 0, 10));
  clock_there(CLOCK_MONOTONIC, &now);
  say("clock", (now.tv_sec - before.tv_sec) * 1000 + (now.tv_nsec - before.tv_nsec) / 1000000);
  say("date", time_there(NULL) - time(NULL) == 0);
  char here[64], there[64];
  gethostname(here, sizeof here);
  name_there(there, sizeof there);
  say("names", strcmp(here, there));
  MPI_Finalize();
  return 0;
}
