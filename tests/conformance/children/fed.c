/* A rank writes to its children, which read from it: each case prints its name, the virtual time that it took
   in ms, and what it found. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
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

struct coprocess {
  int to;
  int from;
  pid_t process;
};

/* The child reads what the rank writes into `to`, and writes what the rank reads from `from`. */
static struct coprocess start(void (*work)(void)) {
  int down[2];
  int up[2];
  if (pipe(down) != 0 || pipe(up) != 0) exit(1);
  const pid_t child = fork();
  if (child == 0) {
    dup2(down[0], 0);
    dup2(up[1], 1);
    close(down[0]);
    close(down[1]);
    close(up[0]);
    close(up[1]);
    work();
    _exit(0);
  }
  close(down[0]);
  close(up[1]);
  return (struct coprocess){.to = down[1], .from = up[0], .process = child};
}

static void end(struct coprocess* one) {
  close(one->to);
  close(one->from);
  waitpid(one->process, NULL, 0);
}

static void put(int file, char byte) {
  if (write(file, &byte, 1) != 1) exit(1);
}

static int get(int file) {
  unsigned char byte = 0;
  return read(file, &byte, 1) == 1 ? byte : -1;
}

/* Answers each byte with its double, after 100 ms. */
static void doubles(void) {
  for (int byte = get(0); byte >= 0; byte = get(0)) {
    sleep_ms(100);
    put(1, (char)(2 * byte));
  }
  sleep_ms(50);
}

static void becomes_cat(void) {
  execlp("cat", "cat", (char*)NULL);
}

static void becomes_pipeline(void) {
  execlp("sh", "sh", "-c", "cat | (sleep 0.2; cat) | wc -c", (char*)NULL);
}

/* Waits 1 ms before it reads the next 4 KiB. */
static void counts_slowly(void) {
  static char bytes[4096];
  int parts = 0;
  while (read(0, bytes, sizeof bytes) > 0) {
    ++parts;
    sleep_ms(1);
  }
  put(1, (char)parts);
}

/* Writes 1 MiB to a cat while it reads what comes back. */
static int feed(struct coprocess* one) {
  enum { all = 1 << 20 };
  static char bytes[all];
  int written = 0;
  int got = 0;
  while (one->from >= 0) {
    struct pollfd files[2] = {{.fd = one->from, .events = POLLIN}, {.fd = one->to, .events = POLLOUT}};
    poll(files, 2, -1);
    if ((files[1].revents & POLLOUT) != 0) {
      written += (int)write(one->to, bytes + written, all - written < 512 ? (size_t)(all - written) : 512);
      if (written == all) {
        close(one->to);
        one->to = -1;
      }
    }
    if (files[0].revents != 0) {
      const int more = (int)read(one->from, bytes, sizeof bytes);
      got += more;
      if (more == 0) break;
    }
  }
  return got;
}

static pid_t start_with(int file, void (*work)(int)) {
  const pid_t child = fork();
  if (child == 0) {
    work(file);
    _exit(0);
  }
  return child;
}

static void answers_after_30_ms(int file) {
  const int byte = get(file);
  sleep_ms(30);
  put(file, (char)(byte + 1));
}

static void counts_events(int file) {
  uint64_t events = 0;
  if (read(file, &events, sizeof events) != sizeof events) _exit(99);
  _exit((int)events);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  began_s = MPI_Wtime();

  struct coprocess one = start(doubles);
  for (int i = 1; i <= 3; ++i) {
    sleep_ms(7);
    put(one.to, (char)i);
    show("coprocess", get(one.from));
  }
  end(&one);
  show("its end", 0);

  one = start(becomes_cat);
  put(one.to, 'x');
  show("cat", get(one.from));
  sleep_ms(10);
  put(one.to, 'y');
  struct pollfd answer = {.fd = one.from, .events = POLLIN};
  show("limit", poll(&answer, 1, 1000));
  show("byte", get(one.from));
  show("no more", poll(&answer, 1, 20));
  end(&one);
  began_s = MPI_Wtime();

  one = start(becomes_cat);
  show("a mebibyte", feed(&one));
  end(&one);

  one = start(becomes_pipeline);
  sleep_ms(50);
  if (write(one.to, "12345", 5) != 5) exit(1);
  close(one.to);
  char text[16] = "";
  if (read(one.from, text, sizeof text - 1) <= 0) exit(1);
  show("pipeline", atoi(text));
  end(&one);

  /* 100 parts of 4 KiB, of which the pipe holds 16 while the child has one: the last is written when the
     child has taken the 84th, 83 ms after the first. */
  one = start(counts_slowly);
  static char parts[100 * 4096];
  const int written = (int)write(one.to, parts, sizeof parts);
  show("a full pipe", written / 4096);
  close(one.to);
  one.to = -1;
  show("parts", get(one.from));
  end(&one);

  int pair[2];
  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  pid_t child = start_with(pair[0], answers_after_30_ms);
  close(pair[0]);
  put(pair[1], 5);
  show("socket pair", get(pair[1]));
  waitpid(child, NULL, 0);

  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  child = start_with(pair[0], answers_after_30_ms);
  close(pair[0]);
  const int set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = pair[1]};
  epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event);
  show("epoll, before", epoll_wait(set, &event, 1, 10));
  put(pair[1], 7);
  show("epoll", epoll_wait(set, &event, 1, 1000));
  show("of epoll", get(event.data.fd));
  waitpid(child, NULL, 0);

  const int events = eventfd(0, 0);
  child = start_with(events, counts_events);
  sleep_ms(40);
  eventfd_write(events, 3);
  int status = 0;
  waitpid(child, &status, 0);
  show("eventfd", WEXITSTATUS(status));
  MPI_Finalize();
  return 0;
}
