/* A server and a client over TCP, for programs that simulate sockets (beside_shadow.py):
 * pair server PORT | pair client HOST PORT echo COUNT | pair client HOST PORT bulk BYTES */
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { question_bytes = 64, part_bytes = 1 << 16, attempts = 100 };

struct Order {
  long is_echo;
  long amount;
};

static char buffer[part_bytes];

static void check(int is_right, const char* what) {
  if (is_right) return;
  perror(what);
  exit(1);
}

static void send_all(int connection, const char* data, long bytes) {
  while (bytes > 0) {
    const long sent = write(connection, data, (size_t)bytes);
    check(sent > 0, "write");
    data += sent;
    bytes -= sent;
  }
}

static void receive_all(int connection, char* data, long bytes) {
  while (bytes > 0) {
    const long received = read(connection, data, (size_t)bytes);
    check(received > 0, "read");
    data += received;
    bytes -= received;
  }
}

static long part_of(long left) {
  return left < part_bytes ? left : part_bytes;
}

static void send_at_once(int connection) {
  const int on = 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void serve(const char* port) {
  const struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  check(bind(listener, (const struct sockaddr*)&here, sizeof here) == 0, "bind");
  check(listen(listener, 1) == 0, "listen");
  const int client = accept(listener, NULL, NULL);
  check(client >= 0, "accept");
  send_at_once(client);
  struct Order order;
  receive_all(client, (char*)&order, sizeof order);
  for (long i = 0; order.is_echo && i < order.amount; ++i) {
    receive_all(client, buffer, question_bytes);
    send_all(client, buffer, question_bytes);
  }
  if (order.is_echo) return;
  for (long left = order.amount; left > 0; left -= part_of(left)) receive_all(client, buffer, part_of(left));
  send_all(client, buffer, 1);
}

static int connection_to(const char* host, const char* port) {
  const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
  struct addrinfo* server;
  check(getaddrinfo(host, port, &hints, &server) == 0, host);
  for (int i = 0; i < attempts; ++i) {
    const int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection, server->ai_addr, server->ai_addrlen) == 0) {
      freeaddrinfo(server);
      return connection;
    }
    close(connection);
    usleep(10000);
  }
  check(0, "connect");
  return -1;
}

static void ask(const char* host, const char* port, struct Order order) {
  const int server = connection_to(host, port);
  send_at_once(server);
  send_all(server, (const char*)&order, sizeof order);
  for (long i = 0; order.is_echo && i < order.amount; ++i) {
    send_all(server, buffer, question_bytes);
    receive_all(server, buffer, question_bytes);
  }
  if (order.is_echo) return;
  for (long left = order.amount; left > 0; left -= part_of(left)) send_all(server, buffer, part_of(left));
  receive_all(server, buffer, 1);
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "server") == 0) {
    serve(argv[2]);
  } else if (argc == 6 && strcmp(argv[1], "client") == 0) {
    const struct Order order = {.is_echo = strcmp(argv[4], "echo") == 0, .amount = atol(argv[5])};
    ask(argv[2], argv[3], order);
  } else {
    fprintf(stderr, "usage: pair server PORT | pair client HOST PORT echo|bulk AMOUNT\n");
    return 2;
  }
  return 0;
}
