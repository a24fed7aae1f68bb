// A server and its clients, processes of one rank, meet at a Unix socket by its name. "early": it listens
// before virtual time and the processes begin. "threads": each process has a second thread. "sets": the
// server waits for an epoll set.
#define _GNU_SOURCE
#include <mpi.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { clients = 3, answer_us = 3000 };

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int has_threads;
static int has_sets;

static void require(int is_right, const char* what) {
  if (is_right) return;
  perror(what);
  exit(1);
}

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static void* sleep_long(void* argument) {
  usleep(100000);
  return argument;
}

static void begin_process(void) {
  pthread_t thread;
  if (has_threads) pthread_create(&thread, NULL, sleep_long, NULL);
}

static int listen_there(void) {
  const int listening = socket(AF_UNIX, SOCK_STREAM, 0);
  require(bind(listening, (struct sockaddr*)&address, sizeof address) == 0, "bind");
  require(listen(listening, clients) == 0, "listen");
  return listening;
}

static void await(int listening) {
  if (has_sets) {
    struct epoll_event event = {.events = EPOLLIN};
    const int set = epoll_create1(0);
    require(epoll_ctl(set, EPOLL_CTL_ADD, listening, &event) == 0, "epoll_ctl");
    require(epoll_wait(set, &event, 1, 60000) == 1, "epoll_wait");
    close(set);
  } else {
    struct pollfd file = {.fd = listening, .events = POLLIN};
    require(poll(&file, 1, 60000) == 1, "poll");
  }
}

static void serve(int listening, double began_ms) {
  begin_process();
  for (int i = 0; i < clients; ++i) {
    await(listening);
    const int connection = accept(listening, NULL, NULL);
    char text[64];
    const ssize_t bytes = read(connection, text, sizeof text);
    require(bytes > 0, "read");
    printf("server: %.*s at %.3f ms\n", (int)bytes, text, now_ms() - began_ms);
    fflush(stdout);
    usleep(answer_us);
    require(write(connection, "answer", 6) == 6, "write");
    close(connection);
  }
  _exit(0);
}

static void ask(int number, double began_ms) {
  begin_process();
  usleep(2000 + 5000 * (unsigned)number);
  const int connection = socket(AF_UNIX, SOCK_STREAM, 0);
  require(connect(connection, (struct sockaddr*)&address, sizeof address) == 0, "connect");
  char text[64];
  const int length = snprintf(text, sizeof text, "client %d", number);
  usleep(1000);
  require(write(connection, text, (size_t)length) == length, "write");
  const ssize_t bytes = read(connection, text, sizeof text);
  printf("client %d: %.*s at %.3f ms\n", number, (int)bytes, text, now_ms() - began_ms);
  fflush(stdout);
  _exit(0);
}

int main(int argc, char** argv) {
  const char* const how = argc > 1 ? argv[1] : "";
  const int is_early = strstr(how, "early") != NULL;
  has_threads = strstr(how, "threads") != NULL;
  has_sets = strstr(how, "sets") != NULL;
  snprintf(address.sun_path, sizeof address.sun_path, "./named.%d", (int)getpid());
  int listening = is_early ? listen_there() : -1;
  MPI_Init(&argc, &argv);
  const double began_ms = now_ms();
  if (fork() == 0) serve(is_early ? listening : listen_there(), began_ms);
  for (int i = 0; i < clients; ++i) {
    if (fork() == 0) ask(i, began_ms);
  }
  while (wait(NULL) > 0) {
  }
  unlink(address.sun_path);
  printf("end at %.3f ms\n", now_ms() - began_ms);
  MPI_Finalize();
  return 0;
}
