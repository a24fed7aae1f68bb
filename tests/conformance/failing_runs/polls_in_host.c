// Each rank waits for ever for files of its own, in one of poll, select and epoll_wait.
#include <mpi.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/select.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static void in_poll(int file, int other) {
  struct pollfd files[2] = {{.fd = file, .events = POLLIN}, {.fd = other, .events = POLLIN}};
  poll(files, 2, -1);
}

static void in_select(int file, int other) {
  fd_set reads;
  FD_ZERO(&reads);
  FD_SET(file, &reads);
  if (other >= 0) FD_SET(other, &reads);
  select((file > other ? file : other) + 1, &reads, NULL, NULL, NULL);
}

static void in_epoll(int file, int other) {
  const int set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(set, EPOLL_CTL_ADD, file, &event);
  if (other >= 0) epoll_ctl(set, EPOLL_CTL_ADD, other, &event);
  epoll_wait(set, &event, 1, -1);
}

int main(void) {
  MPI_Init(NULL, NULL);
  int rank;
  int ends[2];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (pipe(ends) != 0) abort();
  const int counter = eventfd(0, 0);
  const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  void (*const ways[])(int, int) = {in_poll, in_select, in_epoll};
  const int files[][2] = {
      {counter, -1}, {timer, -1}, {ends[0], -1}, {inotify_init(), -1}, {counter, ends[0]}};
  MPI_Barrier(MPI_COMM_WORLD);
  ways[rank % 3](files[rank / 3][0], files[rank / 3][1]);
  MPI_Finalize();
  return 0;
}
