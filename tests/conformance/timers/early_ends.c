// Timers of one microsecond beside waits in the host: their signals come before the thread waits there. Each
// wait ends by the handler, at its time, or goes on if that has SA_RESTART, until another timer ends it. What
// the handler waits for itself is not cut short. Prints the milliseconds that each wait and its handler took.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "../c/check.h"

static int silent_pipe[2], sockets[2], queue, semaphores, locked, fifo;
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
} waits[] = {{"read", in_read, 1},   {"readv", in_readv, 1},   {"recv", in_recv, 1},
             {"fifo", in_fifo, 1},   {"flock", in_flock, 1},   {"sem_wait", in_sem_wait, 1},
             {"futex", in_futex, 1}, {"msgrcv", in_msgrcv, 0}, {"semop", in_semop, 0}};

static void time_wait(const char* name, long (*wait)(void), int flags, timer_t last) {
  struct sigaction handling = {.sa_handler = on_alarm, .sa_flags = flags};
  sigaction(SIGALRM, &handling, NULL);
  const struct itimerspec in_50_ms = {.it_value = {.tv_nsec = 50000000}};
  const struct itimerspec off = {.it_value = {0, 0}};
  const struct itimerval in_1_us = {.it_value = {.tv_usec = 1}};
  const long began_us = now_us();
  if (flags != 0) timer_settime(last, 0, &in_50_ms, NULL);
  setitimer(ITIMER_REAL, &in_1_us, NULL);
  CHECK(wait() == -1 && errno == EINTR);
  const long us = now_us() - began_us;
  timer_settime(last, 0, &off, NULL);
  printf("%s %s %s %ld %ld\n", name, flags != 0 ? "restarts" : "ends", handler_waits, us / 1000,
         handled_us / 1000);
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
  CHECK(pipe(silent_pipe) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  CHECK((queue = msgget(IPC_PRIVATE, 0600)) >= 0 && (semaphores = semget(IPC_PRIVATE, 1, 0600)) >= 0);
  CHECK(sem_init(&semaphore, 1, 0) == 0);
  timer_t last;
  struct sigaction handling = {.sa_handler = on_last};
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  sigaction(SIGUSR1, &handling, NULL);
  CHECK(timer_create(CLOCK_MONOTONIC, &event, &last) == 0);
  const char* const handlers[] = {"nothing", "sleep", "poll", "system"};
  for (int i = 0; i < 4; ++i) {
    handler_waits = handlers[i];
    for (unsigned j = 0; j < sizeof waits / sizeof *waits; ++j) {
      time_wait(waits[j].name, waits[j].wait, 0, last);
      if (waits[j].goes_on) time_wait(waits[j].name, waits[j].wait, SA_RESTART, last);
    }
  }
  msgctl(queue, IPC_RMID, NULL);
  semctl(semaphores, 0, IPC_RMID);
  MPI_Finalize();
  return 0;
}
