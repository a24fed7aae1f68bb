/* How long rank 1 takes until it has the event of a message of rank 0, in ns. Arguments: "wait" polls the
 * event queue, "poll", "select" and "epoll" sleep in the driver; the second is the pause in us before rank 1
 * looks. */
#include <ape_rdma.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

#define OK(call)                                                  \
  do {                                                            \
    const ape_rdma_status got = (call);                           \
    if (got != APE_RDMA_OK) {                                     \
      fprintf(stderr, "%s: %s\n", #call, ape_rdma_strerror(got)); \
      exit(1);                                                    \
    }                                                             \
  } while (0)

static int sleep_until_readable(const char* way, int file) {
  if (strcmp(way, "poll") == 0) {
    struct pollfd one = {.fd = file, .events = POLLIN};
    return poll(&one, 1, -1);
  }
  if (strcmp(way, "select") == 0) {
    fd_set reads;
    FD_ZERO(&reads);
    FD_SET(file, &reads);
    return select(file + 1, &reads, NULL, NULL, NULL);
  }
  const int set = epoll_create1(0);
  struct epoll_event one = {.events = EPOLLIN};
  epoll_ctl(set, EPOLL_CTL_ADD, file, &one);
  return epoll_wait(set, &one, 1, -1);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const long pause_us = atol(argv[2]);
  ape_rdma_port* port;
  ape_rdma_address other;
  ape_rdma_event event;
  int rank, size, file;
  OK(ape_rdma_open(APE_RDMA_ANY_PORT, &port));
  OK(ape_rdma_rank(port, &rank, &size));
  OK(ape_rdma_address_of_rank(port, 1 - rank, &other));
  OK(ape_rdma_descriptor(port, &file));
  if (rank == 0) {
    OK(ape_rdma_post_send(port, other, 0, &(ape_rdma_segment){NULL, 0}, 1, 0, 1));
  } else {
    double time_us;
    nanosleep(&(struct timespec){.tv_nsec = pause_us * 1000}, NULL);
    if (strcmp(argv[1], "wait") != 0 && sleep_until_readable(argv[1], file) != 1) return 1;
    OK(ape_rdma_wait(port, &event));
    OK(ape_rdma_time_us(port, &time_us));
    printf("%.0f\n", time_us * 1000);
  }
  OK(ape_rdma_close(port));
  return 0;
}
