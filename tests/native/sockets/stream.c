/* Rank 0 serves, rank 1 is its client: ten echoes of 64 bytes, then a stream of argv[1] bytes. */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { message = 64, echoes = 10, buffer_bytes = 1 << 20 };

static char buffer[buffer_bytes];

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void require(int holds, const char* what) {
  if (holds) return;
  perror(what);
  exit(1);
}

static void serve(void) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(5000)};
  require(bind(listener, (struct sockaddr*)&address, sizeof address) == 0, "bind");
  require(listen(listener, 8) == 0, "listen");
  socklen_t length = sizeof address;
  const int connection = accept(listener, (struct sockaddr*)&address, &length);
  require(connection >= 0, "accept");
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  char name[64];
  gethostname(name, sizeof name);
  printf("%s: from %s\n", name, inet_ntoa(address.sin_addr));
  for (int i = 0; i < echoes; ++i) {
    require(recv(connection, buffer, message, MSG_WAITALL) == message, "recv");
    require(write(connection, buffer, message) == message, "write");
  }
  uint64_t received = 0;
  uint32_t sum = 0;
  const double began_us = now_us();
  for (ssize_t bytes; (bytes = read(connection, buffer, 65536)) > 0; received += (uint64_t)bytes) {
    for (ssize_t i = 0; i < bytes; ++i) sum = sum * 31 + (unsigned char)buffer[i];
  }
  printf("%llu bytes, sum %08x, %.3f us\n", (unsigned long long)received, sum, now_us() - began_us);
  require(write(connection, "done", 4) == 4, "write");
}

static void use(const char* server, uint64_t bytes) {
  struct addrinfo* found = NULL;
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  const int error = getaddrinfo(server, "5000", &hints, &found);
  if (error != 0) {
    fprintf(stderr, "%s\n", gai_strerror(error));
    exit(1);
  }
  usleep(100); /* until the server listens */
  const int connection = socket(found->ai_family, found->ai_socktype, 0);
  const int on = 1;
  require(connect(connection, found->ai_addr, found->ai_addrlen) == 0, "connect");
  freeaddrinfo(found);
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  for (int i = 0; i < echoes; ++i) {
    const double began_us = now_us();
    require(write(connection, buffer, message) == message, "write");
    require(recv(connection, buffer, message, MSG_WAITALL) == message, "recv");
    if (i == echoes - 1) printf("echo: %.3f us\n", now_us() - began_us);
  }
  for (int i = 0; i < buffer_bytes; ++i) buffer[i] = (char)(i * 7);
  for (uint64_t sent = 0; sent < bytes;) {
    const uint64_t left = bytes - sent;
    const ssize_t part = write(connection, buffer, left < buffer_bytes ? left : buffer_bytes);
    require(part > 0, "write");
    sent += (uint64_t)part;
  }
  shutdown(connection, SHUT_WR);
  require(recv(connection, buffer, 4, MSG_WAITALL) == 4, "recv");
  printf("%.4s\n", buffer);
  close(connection);
}

int main(int count, char** arguments) {
  const char* const rank = getenv("APENET_RANK");
  if (rank != NULL && rank[0] == '0') {
    serve();
  } else {
    use(count > 2 ? arguments[2] : "node0", count > 1 ? strtoull(arguments[1], NULL, 10) : 0);
  }
  return 0;
}
