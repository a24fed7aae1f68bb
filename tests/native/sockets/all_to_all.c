/* Each rank has a connection with each other one, and sends argv[1] bytes over each, in pieces, as poll()
 * lets it. It prints when it has received all, right, and ends. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { most_ranks = 256, first_port = 5000 };

struct connection {
  int file;
  long sent;
  long received;
  int peer; /* -1: not known yet */
};

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e6 + time.tv_nsec * 1e-3;
}

static unsigned char byte_of(int from, int to, long at) {
  return (unsigned char)(from * 31 + to * 17 + at * 7);
}

static int serve(int rank) {
  int server = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(first_port + rank)};
  if (bind(server, (struct sockaddr*)&own, sizeof own) != 0 || listen(server, most_ranks) != 0)
    fail("listen");
  return server;
}

static int connect_to(int rank, int own) {
  char name[32];
  char port[16];
  struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
  struct addrinfo* found;
  snprintf(name, sizeof name, "node%d", rank);
  snprintf(port, sizeof port, "%d", first_port + rank);
  if (getaddrinfo(name, port, &hints, &found) != 0) fail("getaddrinfo");
  int file = socket(AF_INET, SOCK_STREAM, 0);
  while (connect(file, found->ai_addr, found->ai_addrlen) != 0) {
    if (errno != ECONNREFUSED) fail("connect");
    close(file);
    struct timespec pause = {.tv_nsec = 100000};
    nanosleep(&pause, NULL);
    file = socket(AF_INET, SOCK_STREAM, 0);
  }
  freeaddrinfo(found);
  unsigned char number = (unsigned char)own;
  if (send(file, &number, 1, 0) != 1) fail("send");
  return file;
}

int main(int argc, char** argv) {
  const long bytes = argc > 1 ? atol(argv[1]) : 1000;
  const int rank = atoi(getenv("PMI_RANK"));
  const int ranks = atoi(getenv("PMI_SIZE"));
  static struct connection all[most_ranks];
  static struct pollfd files[most_ranks];
  static unsigned char buffer[65536];
  if (ranks > most_ranks || rank >= ranks) return 2;
  const int server = serve(rank);
  int count = 0;
  for (int other = 0; other < rank; ++other)
    all[count++] = (struct connection){connect_to(other, rank), 0, 0, other};
  for (int other = rank + 1; other < ranks; ++other) {
    const int file = accept(server, NULL, NULL);
    unsigned char peer;
    if (file < 0 || recv(file, &peer, 1, 0) != 1) fail("accept");
    all[count++] = (struct connection){file, 0, 0, peer};
  }
  for (int i = 0; i < count; ++i) fcntl(all[i].file, F_SETFL, O_NONBLOCK);
  const double began_us = now_us();
  long wrong = 0;
  for (int open = count; open > 0;) {
    for (int i = 0; i < count; ++i) {
      const int events = (all[i].received < bytes ? POLLIN : 0) | (all[i].sent < bytes ? POLLOUT : 0);
      files[i] = (struct pollfd){.fd = events != 0 ? all[i].file : -1, .events = (short)events};
    }
    if (poll(files, (nfds_t)count, -1) <= 0) fail("poll");
    for (int i = 0; i < count; ++i) {
      struct connection* one = &all[i];
      if (files[i].revents & POLLOUT) {
        long part = bytes - one->sent < 3000 ? bytes - one->sent : 3000;
        for (long at = 0; at < part; ++at) buffer[at] = byte_of(rank, one->peer, one->sent + at);
        const ssize_t sent = send(one->file, buffer, (size_t)part, 0);
        if (sent < 0) fail("send");
        one->sent += sent;
      }
      if (files[i].revents & (POLLIN | POLLHUP)) {
        const ssize_t got = recv(one->file, buffer, sizeof buffer, 0);
        if (got <= 0) fail("recv");
        for (long at = 0; at < got; ++at) wrong += buffer[at] != byte_of(one->peer, rank, one->received + at);
        one->received += got;
      }
      if (files[i].revents != 0 && one->sent == bytes && one->received == bytes) --open;
    }
  }
  printf("%d: %d connections, %ld wrong, %.3f us\n", rank, count, wrong, now_us() - began_us);
  for (int i = 0; i < count; ++i) close(all[i].file);
  return wrong != 0;
}
