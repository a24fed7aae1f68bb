// Timers of one microsecond beside waits in the host: their signals come before the thread waits there. Each
// wait ends by the handler, at its time, or goes on if that has SA_RESTART, until another timer ends it. What
// the handler waits for itself is not cut short. Prints the milliseconds that each wait and its handler took.
// A second thread sleeps again and again (`sleeps`), or waits for a lock for ever (`blocked`).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../c/check.h"

static int silent_pipe[2], full_pipe[2], sockets[2], listener, queue, semaphores, locked, fifo, epoll;
static char unopened[512];
static sem_t semaphore;
static int word;
static const char* handler_waits;
static long handled_us;

static long now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (long)(now.tv_sec % 1000 * 1000000 + now.tv_nsec / 1000);
}

static void on_alarm(int number) {
  (void)number;
  const int error = errno;
  const long began_us = now_us();
  struct pollfd file = {.fd = fifo, .events = POLLIN};
  if (strcmp(handler_waits, "sleep") == 0) CHECK(usleep(20000) == 0);
  if (strcmp(handler_waits, "system") == 0) CHECK(system("sleep 0.02") == 0);
  if (strcmp(handler_waits, "poll") == 0) CHECK(poll(&file, 1, 20) == 0);
  handled_us = now_us() - began_us;
  errno = error;
}

static void on_last(int number) {
  (void)number;
}

static long in_read(void) {
  char byte;
  return read(silent_pipe[0], &byte, 1);
}

static long in_readv(void) {
  char byte;
  const struct iovec part = {.iov_base = &byte, .iov_len = 1};
  return readv(silent_pipe[0], &part, 1);
}

static long in_recv(void) {
  char byte;
  return recv(sockets[0], &byte, 1, 0);
}

static long in_fifo(void) {
  char byte;
  return read(fifo, &byte, 1);
}

static long in_recvmsg(void) {
  char byte;
  struct iovec part = {.iov_base = &byte, .iov_len = 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  return recvmsg(sockets[0], &message, 0);
}

static long in_write(void) {
  return write(full_pipe[1], "", 1);
}

static long in_open(void) {
  return open(unopened, O_RDONLY);
}

static long in_accept(void) {
  return accept(listener, NULL, NULL);
}

static long in_splice(void) {
  return splice(fifo, NULL, full_pipe[1], NULL, 1, 0);
}

static long in_poll(void) {
  struct pollfd file = {.fd = fifo, .events = POLLIN};
  return poll(&file, 1, -1);
}

static long in_select(void) {
  fd_set files;
  FD_ZERO(&files);
  FD_SET(fifo, &files);
  return select(fifo + 1, &files, NULL, NULL, NULL);
}

static long in_epoll_wait(void) {
  struct epoll_event event;
  return epoll_wait(epoll, &event, 1, -1);
}

static long in_sem_wait(void) {
  return sem_wait(&semaphore);
}

static long in_futex(void) {
  return syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL);
}

static long in_msgrcv(void) {
  struct {
    long type;
    char text[8];
  } message;
  return msgrcv(queue, &message, sizeof message.text, 0, 0);
}

static long in_semop(void) {
  struct sembuf taken = {.sem_op = -1};
  return semop(semaphores, &taken, 1);
}

static long in_flock(void) {
  return flock(locked, LOCK_EX);
}

// Whether it goes on after a handler with SA_RESTART.
static const struct {
  const char* name;
  long (*wait)(void);
  int goes_on;
} waits[] = {{"read", in_read, 1},       {"readv", in_readv, 1},          {"recv", in_recv, 1},
             {"recvmsg", in_recvmsg, 1}, {"write", in_write, 1},          {"fifo", in_fifo, 1},
             {"open", in_open, 1},       {"accept", in_accept, 1},        {"splice", in_splice, 1},
             {"flock", in_flock, 1},     {"sem_wait", in_sem_wait, 1},    {"futex", in_futex, 1},
             {"msgrcv", in_msgrcv, 0},   {"semop", in_semop, 0},          {"poll", in_poll, 0},
             {"select", in_select, 0},   {"epoll_wait", in_epoll_wait, 0}};

static void time_wait(const char* name, long (*wait)(void), int flags, timer_t last) {
  struct sigaction handling = {.sa_handler = on_alarm, .sa_flags = flags};
  sigaction(SIGALRM, &handling, NULL);
  // In the host's time: it must not end what the handler waits for.
  const int is_long = strcmp(handler_waits, "nothing") != 0;
  const struct itimerspec later = {.it_value = {is_long ? 2 : 0, is_long ? 0 : 50000000}};
  const struct itimerspec off = {.it_value = {0, 0}};
  const struct itimerval in_1_us = {.it_value = {.tv_usec = 1}};
  const long began_us = now_us();
  if (flags == SA_RESTART) timer_settime(last, 0, &later, NULL);
  setitimer(ITIMER_REAL, &in_1_us, NULL);
  CHECK(wait() == -1 && errno == EINTR);
  const long us = now_us() - began_us;
  timer_settime(last, 0, &off, NULL);
  const char* const how = flags == SA_RESTART ? "restarts" : flags == SA_NODEFER ? "defers none" : "ends";
  printf("%s, %s, %s: %ld %ld\n", name, how, handler_waits, us / 1000, handled_us / 1000);
}

static void* sleep_for_ever(void* unused) {
  while (usleep(7000) == 0) continue;
  return unused;
}

static void* wait_for_ever(void* lock) {
  pthread_mutex_lock(lock);
  return NULL;
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  char path[512];
  snprintf(path, sizeof path, "%s/fifo-%d", argv[1], world.rank);
  CHECK(mkfifo(path, 0600) == 0);
  CHECK((fifo = open(path, O_RDWR)) >= 0);
  snprintf(path, sizeof path, "%s/lock-%d", argv[1], world.rank);
  const int holder = open(path, O_RDWR | O_CREAT, 0600);
  CHECK(flock(holder, LOCK_EX) == 0);
  CHECK((locked = open(path, O_RDWR)) >= 0);
  snprintf(unopened, sizeof unopened, "%s/unopened-%d", argv[1], world.rank);
  CHECK(mkfifo(unopened, 0600) == 0);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "early_ends-%d", (int)getpid());
  CHECK((listener = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
  CHECK(bind(listener, (struct sockaddr*)&address, sizeof address) == 0 && listen(listener, 1) == 0);
  CHECK(pipe2(full_pipe, O_NONBLOCK) == 0);
  while (write(full_pipe[1], "", 1) == 1) continue;
  CHECK(fcntl(full_pipe[1], F_SETFL, 0) == 0);
  struct epoll_event event_of_fifo = {.events = EPOLLIN};
  CHECK((epoll = epoll_create1(0)) >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fifo, &event_of_fifo) == 0);
  CHECK(pipe(silent_pipe) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  CHECK((queue = msgget(IPC_PRIVATE, 0600)) >= 0 && (semaphores = semget(IPC_PRIVATE, 1, 0600)) >= 0);
  CHECK(sem_init(&semaphore, 1, 0) == 0);
  timer_t last;
  struct sigaction handling = {.sa_handler = on_last};
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  sigaction(SIGUSR1, &handling, NULL);
  CHECK(timer_create(CLOCK_MONOTONIC, &event, &last) == 0);
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  pthread_t other;
  void* (*const run)(void*) = strcmp(argv[2], "sleeps") == 0 ? sleep_for_ever : wait_for_ever;
  if (strcmp(argv[2], "alone") != 0) CHECK(pthread_create(&other, NULL, run, &lock) == 0);
  // Beside another thread the host has a part in when a handler's wait in the host ends.
  const char* const handlers[] = {"nothing", "sleep", "poll", "system"};
  const int is_alone = strcmp(argv[2], "alone") == 0;
  for (int i = 0; i < (is_alone ? 4 : 2); ++i) {
    handler_waits = handlers[i];
    for (unsigned j = 0; j < sizeof waits / sizeof *waits; ++j) {
      time_wait(waits[j].name, waits[j].wait, 0, last);
      time_wait(waits[j].name, waits[j].wait, SA_NODEFER, last);
      const int is_short = is_alone && (i == 0 || (i == 1 && j == 0));
      if (waits[j].goes_on && is_short) time_wait(waits[j].name, waits[j].wait, SA_RESTART, last);
    }
  }
  msgctl(queue, IPC_RMID, NULL);
  semctl(semaphores, 0, IPC_RMID);
  fflush(stdout);
  MPI_Finalize();
  _exit(0);  // the other thread does not end
}
