/* A rank reads pipes that its child writes: each case prints its name, the virtual time that it took in ms,
   and what it found. */
#define _GNU_SOURCE
#include <mpi.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double began_s;

static void show(const char* name, int found) {
  printf("%s: %.1f ms, %d\n", name, (MPI_Wtime() - began_s) * 1e3, found);
  began_s = MPI_Wtime();
}

static void sleep_ms(long ms) {
  const struct timespec duration = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
  nanosleep(&duration, NULL);
}

/* Writes a byte every 100 ms, and closes the pipe by its end. */
static pid_t writer(int* file, int bytes) {
  int ends[2];
  if (pipe(ends) != 0) exit(1);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    for (int i = 0; i < bytes; ++i) {
      sleep_ms(100);
      if (write(ends[1], "x", 1) != 1) _exit(1);
    }
    sleep_ms(100);
    _exit(0);
  }
  close(ends[1]);
  *file = ends[0];
  return child;
}

static int poll_one(int file, int limit_ms) {
  struct pollfd one = {.fd = file, .events = POLLIN};
  return poll(&one, 1, limit_ms);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  char byte;
  int file;
  int other;
  began_s = MPI_Wtime();

  const pid_t first = writer(&file, 2);
  int bytes = 0;
  while (read(file, &byte, 1) == 1) show("read", ++bytes);
  show("end", bytes);
  waitpid(first, NULL, 0);
  close(file);

  const pid_t second = writer(&file, 1);
  show("limit", poll_one(file, 30));
  show("poll", poll_one(file, 10000));
  show("left", (int)read(file, &byte, 1));
  struct timeval limit = {.tv_sec = 10};
  fd_set files;
  FD_ZERO(&files);
  FD_SET(file, &files);
  select(file + 1, &files, NULL, NULL, &limit);
  show("select", (int)(limit.tv_sec * 1000 + limit.tv_usec / 1000));
  waitpid(second, NULL, 0);
  close(file);

  const pid_t third = writer(&file, 3);
  const pid_t fourth = writer(&other, 1);
  struct pollfd both[2] = {{.fd = file, .events = POLLIN}, {.fd = other, .events = POLLIN}};
  show("two", poll(both, 2, -1));
  waitpid(fourth, NULL, 0);
  show("child", poll_one(file, 0));
  waitpid(third, NULL, 0);
  show("children", 0);
  MPI_Finalize();
  return 0;
}
