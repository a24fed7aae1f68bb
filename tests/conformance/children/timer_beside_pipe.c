// A second thread waits for a timer's file and for a pipe of a child: the timer ends every 10 ms from 7 ms
// on, the child writes every 10 ms.
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

static int ends[2];

static void require(int is_right, const char* what) {
  if (is_right) return;
  perror(what);
  exit(1);
}

static void* read_both(void* argument) {
  const int set = epoll_create1(0);
  const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  const struct itimerspec times = {.it_value = {0, 7000000}, .it_interval = {0, 10000000}};
  require(timerfd_settime(timer, 0, &times, NULL) == 0, "timerfd_settime");
  struct epoll_event event = {.events = EPOLLIN, .data.fd = timer};
  require(epoll_ctl(set, EPOLL_CTL_ADD, timer, &event) == 0, "epoll_ctl");
  event.data.fd = ends[0];
  require(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event) == 0, "epoll_ctl");
  const double began_s = MPI_Wtime();
  for (ssize_t bytes = 1; bytes > 0;) {
    require(epoll_wait(set, &event, 1, -1) == 1, "epoll_wait");
    char text[8];
    bytes = read(event.data.fd, text, sizeof text);
    const char* const name = event.data.fd == timer ? "timer" : "pipe";
    printf("%s: %d at %.3f ms\n", name, (int)bytes, 1e3 * (MPI_Wtime() - began_s));
  }
  return argument;
}

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  require(pipe(ends) == 0, "pipe");
  if (fork() == 0) {
    close(ends[0]);
    for (int i = 0; i < 3; ++i) {
      usleep(10000);
      require(write(ends[1], "x", 1) == 1, "write");
    }
    _exit(0);
  }
  close(ends[1]);
  pthread_t thread;
  pthread_create(&thread, NULL, read_both, NULL);
  pthread_join(thread, NULL);
  while (wait(NULL) > 0) {
  }
  MPI_Finalize();
  return 0;
}
