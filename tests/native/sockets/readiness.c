/* Rank 0 serves datagrams, and connections by epoll; rank 1 waits by poll and select. Says what differs from
 * Linux. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { connections = 8, most_bytes = 70000 };

static char buffer[most_bytes];
static int line_of_failure;

#define CHECK(holds)                                                  \
  do {                                                                \
    if (!(holds)) {                                                   \
      printf("line %d: " #holds ": %s\n", __LINE__, strerror(errno)); \
      if (line_of_failure == 0) line_of_failure = __LINE__;           \
    }                                                                 \
  } while (0)

static long now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static struct sockaddr_in at(const char* name, int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
  if (name == NULL) return address;
  const struct hostent* const found = gethostbyname(name);
  CHECK(found != NULL);
  memcpy(&address.sin_addr, found->h_addr_list[0], sizeof address.sin_addr);
  return address;
}

static const int sizes[] = {0, 1, 1400, 60000};

static void echo_datagrams(void) {
  const int socket_file = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in address = at(NULL, 6000);
  CHECK(bind(socket_file, (struct sockaddr*)&address, sizeof address) == 0);
  for (int i = 0; i < 4; ++i) {
    socklen_t length = sizeof address;
    const ssize_t bytes =
        recvfrom(socket_file, buffer, sizeof buffer, 0, (struct sockaddr*)&address, &length);
    CHECK(bytes == sizes[i]);
    CHECK(sendto(socket_file, buffer, (size_t)bytes, 0, (struct sockaddr*)&address, length) == bytes);
  }
  const struct timeval limit = {.tv_sec = 0, .tv_usec = 5000};
  CHECK(setsockopt(socket_file, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
  const long began_us = now_us();
  CHECK(recv(socket_file, buffer, 1, 0) == -1 && errno == EAGAIN);
  CHECK(now_us() - began_us >= 5000 && now_us() - began_us < 5010);
  CHECK(recv(socket_file, buffer, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
  close(socket_file);
}

/* Edge-triggered: every socket is read until it is empty. */
static void serve(void) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  const struct sockaddr_in address = at(NULL, 6001);
  CHECK(accept(listener, NULL, NULL) == -1 && errno == EINVAL);
  CHECK(bind(listener, (const struct sockaddr*)&address, sizeof address) == 0);
  CHECK(listen(listener, 16) == 0);
  CHECK(accept(listener, NULL, NULL) == -1 && errno == EAGAIN);
  const int set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
  CHECK(epoll_ctl(set, EPOLL_CTL_ADD, listener, &event) == 0);
  CHECK(epoll_ctl(set, EPOLL_CTL_ADD, listener, &event) == -1 && errno == EEXIST);
  int begun = 0;
  int open = 0;
  while (begun < connections || open > 0) {
    struct epoll_event events[3];
    const int ready = epoll_wait(set, events, 3, -1);
    CHECK(ready > 0);
    for (int i = 0; i < ready; ++i) {
      if (events[i].data.fd == listener) {
        for (int made; (made = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0; ++begun, ++open) {
          event = (struct epoll_event){.events = EPOLLIN | EPOLLET, .data.fd = made};
          CHECK(epoll_ctl(set, EPOLL_CTL_ADD, made, &event) == 0);
        }
        CHECK(errno == EAGAIN);
        continue;
      }
      ssize_t bytes;
      while ((bytes = read(events[i].data.fd, buffer, 1000)) > 0)
        CHECK(write(events[i].data.fd, buffer, (size_t)bytes) == bytes);
      CHECK(bytes == 0 || errno == EAGAIN);
      if (bytes == 0) {
        close(events[i].data.fd);
        --open;
      }
    }
  }
  CHECK(epoll_wait(set, &event, 1, 3) == 0);
}

static void use_datagrams(void) {
  const int socket_file = socket(AF_INET, SOCK_DGRAM, 0);
  const struct sockaddr_in address = at("node0", 6000);
  CHECK(send(socket_file, buffer, 1, 0) == -1 && errno == EDESTADDRREQ);
  CHECK(connect(socket_file, (const struct sockaddr*)&address, sizeof address) == 0);
  for (int i = 0; i < 4; ++i) {
    CHECK(send(socket_file, buffer, (size_t)sizes[i], 0) == sizes[i]);
    CHECK(recv(socket_file, buffer, sizeof buffer, 0) == sizes[i]);
  }
  CHECK(send(socket_file, buffer, 65508, 0) == -1 && errno == EMSGSIZE);
}

static void await_connections(const int* files) {
  struct pollfd polled[connections];
  for (int i = 0; i < connections; ++i)
    polled[i] = (struct pollfd){.fd = files[i], .events = POLLOUT, .revents = 0};
  for (int left = connections; left > 0;) {
    CHECK(poll(polled, connections, -1) > 0);
    for (int i = 0; i < connections; ++i) {
      if (polled[i].revents == 0) continue;
      int error = -1;
      socklen_t length = sizeof error;
      CHECK(getsockopt(files[i], SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0);
      polled[i].fd = -1;
      --left;
    }
  }
}

static void read_all(const int* files) {
  for (long left = 1000L * connections * (connections + 1) / 2; left > 0;) {
    fd_set reads;
    FD_ZERO(&reads);
    for (int i = 0; i < connections; ++i) FD_SET(files[i], &reads);
    struct timeval limit = {.tv_sec = 1, .tv_usec = 0};
    if (select(files[connections - 1] + 1, &reads, NULL, NULL, &limit) <= 0) break;
    for (int i = 0; i < connections; ++i) {
      if (!FD_ISSET(files[i], &reads)) continue;
      int there = 0;
      CHECK(ioctl(files[i], FIONREAD, &there) == 0);
      const ssize_t bytes = read(files[i], buffer, sizeof buffer);
      CHECK(bytes > 0 && bytes == there);
      left -= bytes;
    }
  }
}

static void use(void) {
  const struct sockaddr_in address = at("node0", 6001);
  int files[connections];
  for (int i = 0; i < connections; ++i) {
    files[i] = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fcntl(files[i], F_SETFL, O_NONBLOCK) == 0);
    CHECK(recv(files[i], buffer, 1, 0) == -1 && errno == ENOTCONN);
    CHECK(connect(files[i], (const struct sockaddr*)&address, sizeof address) == -1 && errno == EINPROGRESS);
    CHECK(connect(files[i], (const struct sockaddr*)&address, sizeof address) == -1 && errno == EALREADY);
  }
  await_connections(files);
  CHECK(connect(files[0], (const struct sockaddr*)&address, sizeof address) == 0);
  CHECK(connect(files[0], (const struct sockaddr*)&address, sizeof address) == -1 && errno == EISCONN);
  for (int i = 0; i < connections; ++i)
    CHECK(write(files[i], buffer, 1000 * (size_t)(i + 1)) == 1000 * (i + 1));
  read_all(files);
  const int copy = dup(files[0]);
  close(files[0]);
  CHECK(fcntl(copy, F_SETFL, 0) == 0);
  CHECK(write(copy, buffer, 1) == 1);
  CHECK(read(copy, buffer, 1) == 1);
  for (int i = 1; i < connections; ++i) close(files[i]);
  const struct sockaddr_in nobody = at("node0", 7777);
  CHECK(connect(socket(AF_INET, SOCK_STREAM, 0), (const struct sockaddr*)&nobody, sizeof nobody) == -1 &&
        errno == ECONNREFUSED);
  CHECK(socket(AF_INET6, SOCK_STREAM, 0) == -1 && errno == EAFNOSUPPORT);
  CHECK(socket(AF_INET, SOCK_RAW, 1) == -1 && errno == EPERM);
  const int value = 1;
  CHECK(setsockopt(copy, SOL_SOCKET, SO_BINDTODEVICE, &value, sizeof value) == -1);
  CHECK(gethostbyname("no-such-node") == NULL && h_errno == HOST_NOT_FOUND);
}

int main(void) {
  if (strcmp(getenv("APENET_RANK"), "0") == 0) {
    echo_datagrams();
    serve();
  } else {
    usleep(1000);
    use_datagrams();
    usleep(6000);
    use();
  }
  printf("done at %ld us\n", now_us());
  return line_of_failure == 0 ? 0 : 1;
}
