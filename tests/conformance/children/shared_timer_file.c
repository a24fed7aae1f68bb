// A child and its parent read one timer's descriptor, whose ends are 10 ms apart: the child's read begins at
// 1 ms, the parent's at 11 ms.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

static void show(const char* who, int file) {
  uint64_t ends = 0;
  if (read(file, &ends, sizeof ends) == sizeof ends) printf("%s %d\n", who, (int)ends);
  fflush(stdout);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int file = timerfd_create(CLOCK_MONOTONIC, 0);
  const struct itimerspec each = {{0, 10000000}, {0, 10000000}};
  timerfd_settime(file, 0, &each, NULL);
  if (fork() == 0) {
    usleep(1000);
    show("child", file);
    _exit(0);
  }
  usleep(11000);
  show("parent", file);
  wait(NULL);
  MPI_Finalize();
  return 0;
}
