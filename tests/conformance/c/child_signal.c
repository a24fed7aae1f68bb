// The end of a child, whose signal is handled, ends a sleep of its parent when it comes, with what is left.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static volatile int ended;

static void note_end(int signal) {
  (void)signal;
  ++ended;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)(time.tv_sec % 1000000) + (double)time.tv_nsec * 1e-9;
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  if (world.rank == 0) {
    const struct sigaction action = {.sa_handler = note_end};
    sigaction(SIGCHLD, &action, NULL);
    const double began = now();
    const pid_t child = fork();
    if (child == 0) {
      usleep(200000);
      _exit(0);
    }
    struct timespec left = {1000, 0};
    CHECK(nanosleep(&left, &left) == -1 && errno == EINTR && ended == 1);
    const double passed = now() - began;
    const double whole = passed + (double)left.tv_sec + (double)left.tv_nsec * 1e-9;
    CHECK(passed > 0.19 && whole > 999.99 && whole < 1000.01);
  }
  return end_program(world);
}
