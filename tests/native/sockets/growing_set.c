// A thread waits for an epoll set, to which another one adds files meanwhile: first a socket, then a pipe.
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { of_eventfd, of_socket, of_pipe };

static int set;
static int most_ms;

static void require(int is_right, const char* what) {
  if (is_right) return;
  perror(what);
  exit(1);
}

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void add(int file, unsigned what) {
  struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u32 = what};
  require(epoll_ctl(set, EPOLL_CTL_ADD, file, &event) == 0, "epoll_ctl");
}

static void* wait_for_set(void* argument) {
  (void)argument;
  const double began_s = now_s();
  for (int i = 0; i < 2; ++i) {
    struct epoll_event event = {.data.u32 = of_eventfd};
    const int ready = epoll_wait(set, &event, 1, most_ms);
    printf("%d ready, file %u, after %.3f s\n", ready, event.data.u32, now_s() - began_s);
  }
  return NULL;
}

int main(int argc, char** argv) {
  most_ms = argc > 1 ? atoi(argv[1]) : -1;
  set = epoll_create1(0);
  add(eventfd(0, 0), of_eventfd);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  require(bind(listening, (struct sockaddr*)&address, length) == 0 && listen(listening, 1) == 0, "listen");
  require(getsockname(listening, (struct sockaddr*)&address, &length) == 0, "getsockname");
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  require(connect(client, (struct sockaddr*)&address, length) == 0, "connect");
  const int server = accept(listening, NULL, NULL);
  int files[2];
  require(server >= 0 && pipe(files) == 0 && write(files[1], "x", 1) == 1, "pipe");

  pthread_t thread;
  pthread_create(&thread, NULL, wait_for_set, NULL);
  usleep(10000);
  add(server, of_socket);
  usleep(10000);
  require(write(client, "x", 1) == 1, "write");  // at 20 ms
  usleep(10000);
  add(files[0], of_pipe);  // at 30 ms, ready
  pthread_join(thread, NULL);
  return 0;
}
