// Waits for files that only this process can make ready are sleeps: each takes an hour, or what a thread of
// the process or a child needs that has the other end. Prints one line a case: name, result, time in ms.
#define _GNU_SOURCE
#include <mpi.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { hour_s = 3600, hour_ms = hour_s * 1000 };

static double began;

static void start(void) {
  began = MPI_Wtime();
}

static void tell(const char* name, int result) {
  printf("%s %d %.0f\n", name, result, (MPI_Wtime() - began) * 1e3);
  fflush(stdout);
  start();
}

static int poll_one(int file, int limit_ms) {
  struct pollfd one = {.fd = file, .events = POLLIN};
  return poll(&one, 1, limit_ms);
}

static int select_one(int file, struct timeval* limit) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(file, &set);
  return select(file + 1, &set, NULL, NULL, limit);
}

static int epoll_of(int file) {
  const int epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(epoll, EPOLL_CTL_ADD, file, &event);
  return epoll;
}

static int epoll_one(int epoll, int limit_ms) {
  struct epoll_event event;
  return epoll_wait(epoll, &event, 1, limit_ms);
}

static void write_byte(int file) {
  if (write(file, "........", 8) != 8) abort();
}

static void pass_limits(void) {
  int ends[2], sockets[2];
  if (pipe(ends) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) abort();
  const int event = eventfd(0, 0);
  const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  const int signals = signalfd(-1, &set, 0);
  const struct timespec hour = {.tv_sec = hour_s};
  struct timeval limit = {.tv_sec = hour_s};
  start();
  tell("pipe", poll_one(ends[0], hour_ms));
  tell("socket", poll_one(sockets[0], hour_ms));
  tell("eventfd", poll_one(event, hour_ms));
  tell("signalfd", poll_one(signals, hour_ms));
  tell("timerfd", poll_one(timer, hour_ms));
  tell("duplicate", poll_one(dup(ends[0]), hour_ms));
  tell("select", select_one(ends[0], &limit));
  printf("left %ld.%06ld\n", (long)limit.tv_sec, (long)limit.tv_usec);
  struct pollfd one = {.fd = event, .events = POLLIN};
  tell("ppoll", ppoll(&one, 1, &hour, NULL));
  tell("masked ppoll", ppoll(&one, 1, &hour, &set));
  const int epoll = epoll_of(ends[0]);
  const int outer = epoll_of(epoll);
  struct epoll_event got;
  tell("epoll", epoll_one(epoll, hour_ms));
  tell("nested epoll", epoll_one(outer, hour_ms));
  tell("epoll_pwait2", epoll_pwait2(epoll, &got, 1, &hour, NULL));
  tell("sigtimedwait", sigtimedwait(&set, NULL, &hour));
  const struct itimerspec soon = {.it_value = {.tv_sec = 2}};
  timerfd_settime(timer, 0, &soon, NULL);
  one.fd = timer;
  struct pollfd both[2] = {one, {.fd = ends[0], .events = POLLIN}};
  tell("timer and pipe", poll(both, 2, hour_ms));
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  struct timespec date;
  clock_gettime(CLOCK_REALTIME, &date);
  date.tv_sec += hour_s;
  start();
  tell("semaphore", sem_timedwait(&semaphore, &date));
  write_byte(ends[1]);
  start();
  tell("ready pipe", poll_one(ends[0], hour_ms));
  tell("ready epoll", epoll_one(outer, hour_ms));
}

// A child has inherited the pipe, or gets it by a message, and writes after 50 ms of the host.
static void wait_for_children(void) {
  int ends[2], sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) abort();
  char room[CMSG_SPACE(sizeof(int))] = {0};
  char byte = 0;
  struct iovec part = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  if (fork() == 0) {
    if (recvmsg(sockets[1], &message, 0) != 1) abort();
    usleep(50000);
    write_byte(*(int*)CMSG_DATA(CMSG_FIRSTHDR(&message)));
    _exit(0);
  }
  if (pipe(ends) != 0) abort();
  struct cmsghdr* head = CMSG_FIRSTHDR(&message);
  *head =
      (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  memcpy(CMSG_DATA(head), &ends[1], sizeof(int));
  if (sendmsg(sockets[0], &message, 0) != 1) abort();
  printf("sent %d\n", poll_one(ends[0], hour_ms));
  wait(NULL);

  if (pipe(ends) != 0) abort();
  if (fork() == 0) {
    usleep(50000);
    write_byte(ends[1]);
    _exit(0);
  }
  printf("child %d\n", poll_one(ends[0], hour_ms));
  wait(NULL);

  // The child of a child that has ended is none of this process's.
  if (pipe(ends) != 0) abort();
  if (fork() == 0) {
    if (fork() != 0) _exit(0);
    usleep(50000);
    write_byte(ends[1]);
    _exit(0);
  }
  wait(NULL);
  printf("grandchild %d\n", epoll_one(epoll_of(ends[0]), hour_ms));
  fflush(stdout);

  // One that has closed it, and waits for the end of this process.
  int gate[2];
  if (pipe(gate) != 0 || pipe(ends) != 0) abort();
  const pid_t idle = fork();
  if (idle == 0) {
    close(ends[0]);
    close(ends[1]);
    close(gate[1]);
    char end;
    _exit(read(gate[0], &end, 1) != 0);
  }
  while (1) {  // until it has
    char path[64], target[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", idle, gate[1]);
    if (readlink(path, target, sizeof target) < 0) break;
    sched_yield();
  }
  start();
  tell("beside a child", poll_one(ends[0], hour_ms));
  close(gate[1]);
  wait(NULL);
}

static int written[2];

// Writes two seconds later.
static void* writes(void* unused) {
  sleep(2);
  write_byte(written[1]);
  return unused;
}

static void wait_for_threads(void) {
  const int endless = -1;
  for (int is_endless = 0; is_endless < 2; ++is_endless) {
    for (int by_epoll = 0; by_epoll < 2; ++by_epoll) {
      pthread_t thread;
      if (pipe(written) != 0) abort();
      start();
      pthread_create(&thread, NULL, writes, NULL);
      const int limit_ms = is_endless ? endless : hour_ms;
      const int result =
          by_epoll ? epoll_one(epoll_of(written[0]), limit_ms) : poll_one(written[0], limit_ms);
      tell("thread", result);
      pthread_join(thread, NULL);
      start();
      tell("no thread", poll_one(eventfd(0, 0), hour_ms));
    }
  }
  pthread_t thread;
  if (pipe(written) != 0) abort();
  start();
  pthread_create(&thread, NULL, writes, NULL);
  char bytes[8];
  tell("read", (int)read(written[0], bytes, 8));
  pthread_join(thread, NULL);
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (strcmp(argv[1], "limits") == 0) pass_limits();
  if (strcmp(argv[1], "children") == 0) wait_for_children();
  if (strcmp(argv[1], "threads") == 0) wait_for_threads();
  MPI_Finalize();
  return 0;
}
