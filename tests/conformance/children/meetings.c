/* A rank and its child meet at what the argument names, in both directions: "rank" and "child" are the times
   in ms at which each of them has got what the other has given after 30 ms. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static void sleep_ms(long ms) {
  const struct timespec duration = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
  nanosleep(&duration, NULL);
}

static char path[128];
static int file = -1;
static int object = -1;
static mqd_t queue;
static sigset_t usr1;
static pid_t child;

static void handle(int signal) {
  (void)signal;
}

struct meeting {
  const char* name;
  void (*make)(void);  /* before the child begins */
  void (*begin)(void); /* the one that gives takes what the other one waits for */
  void (*give)(void);
  void (*await)(void);
};

static void nothing(void) {}

/* Files with names. */
static void make_fifo(void) {
  if (mkfifo(path, 0600) != 0) exit(1);
}
static void open_fifo_to_write(void) {
  file = open(path, O_WRONLY);
  if (write(file, "x", 1) != 1) exit(1);
}
static void read_fifo(void) {
  char byte;
  file = open(path, O_RDONLY);
  if (read(file, &byte, 1) != 1) exit(1);
}

static void make_queue(void) {
  const struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 8};
  queue = mq_open(strrchr(path, '/'), O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
  if (queue < 0) exit(77);
  mq_unlink(strrchr(path, '/'));
}
static void send_to_queue(void) {
  mq_send(queue, "x", 1, 0);
}
static void receive_from_queue(void) {
  char text[8];
  if (mq_receive(queue, text, sizeof text, NULL) != 1) exit(1);
}

static void make_semaphores(void) {
  object = semget(IPC_PRIVATE, 1, 0600);
}
static void change_semaphore(short by) {
  struct sembuf operation = {.sem_num = 0, .sem_op = by, .sem_flg = 0};
  if (semop(object, &operation, 1) != 0) exit(1);
}
static void raise_semaphore(void) {
  change_semaphore(1);
}
static void lower_semaphore(void) {
  change_semaphore(-1);
}

struct message {
  long type;
  char text[8];
};
static void make_messages(void) {
  object = msgget(IPC_PRIVATE, 0600);
}
static void send_message(void) {
  const struct message one = {.type = 1, .text = "x"};
  msgsnd(object, &one, sizeof one.text, 0);
}
static void receive_message(void) {
  struct message one;
  if (msgrcv(object, &one, sizeof one.text, 0, 0) < 0) exit(1);
}

static void make_file(void) {
  close(open(path, O_RDWR | O_CREAT | O_EXCL, 0600));
}
static void lock_by_flock(void) {
  file = open(path, O_RDWR);
  if (flock(file, LOCK_EX) != 0) exit(1);
}
static void unlock_by_flock(void) {
  flock(file, LOCK_UN);
}
static void set_lock(short type) {
  struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
  if (fcntl(file, F_SETLKW, &lock) != 0) exit(1);
}
static void lock_by_fcntl(void) {
  file = open(path, O_RDWR);
  set_lock(F_WRLCK);
}
static void unlock_by_fcntl(void) {
  set_lock(F_UNLCK);
}

/* Signals, to the child or to the rank. */
static void block_signal(void) {
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  sigprocmask(SIG_BLOCK, &usr1, NULL);
}
static void send_signal(void) {
  kill(child == 0 ? getppid() : child, SIGUSR1);
}
static void await_by_sigwait(void) {
  int signal;
  sigwait(&usr1, &signal);
}
static void await_by_signalfd(void) {
  struct signalfd_siginfo info;
  file = signalfd(-1, &usr1, 0);
  if (read(file, &info, sizeof info) != (ssize_t)sizeof info) exit(1);
}
static void await_by_suspend(void) {
  signal(SIGUSR1, handle);
  sigset_t none;
  sigemptyset(&none);
  sigsuspend(&none);
}
static void handle_signal(void) {
  signal(SIGUSR1, handle);
}
static void await_by_pause(void) {
  pause();
}

static const struct meeting meetings[] = {
    {"fifo", make_fifo, nothing, open_fifo_to_write, read_fifo},
    {"mq", make_queue, nothing, send_to_queue, receive_from_queue},
    {"semop", make_semaphores, nothing, raise_semaphore, lower_semaphore},
    {"msgrcv", make_messages, nothing, send_message, receive_message},
    {"flock", make_file, lock_by_flock, unlock_by_flock, lock_by_flock},
    {"fcntl", make_file, lock_by_fcntl, unlock_by_fcntl, lock_by_fcntl},
    {"sigwait", block_signal, nothing, send_signal, await_by_sigwait},
    {"signalfd", block_signal, nothing, send_signal, await_by_signalfd},
    {"sigsuspend", block_signal, nothing, send_signal, await_by_suspend},
    {"pause", handle_signal, nothing, send_signal, await_by_pause},
};

/* One of both gives; the other one waits from 10 ms on. */
static double meet(const struct meeting* one, int gives) {
  const double began = now_ms();
  if (gives) {
    one->begin();
    sleep_ms(30);
    one->give();
  } else {
    sleep_ms(10);
    one->await();
  }
  return now_ms() - began;
}

/* The rank waits for the end of its child by a pidfd. */
static void await_by_pidfd(void) {
  const double began = now_ms();
  child = fork();
  if (child == 0) {
    sleep_ms(30);
    _exit(0);
  }
  struct pollfd one = {.fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN};
  if (one.fd < 0 || poll(&one, 1, -1) != 1) exit(1);
  printf("rank: %.1f\n", now_ms() - began);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* const name = argv[1];
  snprintf(path, sizeof path, "%s/%s-%d", argv[2], name, (int)getpid());
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(name, "pidfd") == 0) await_by_pidfd();
  for (size_t i = 0; i < sizeof meetings / sizeof *meetings; ++i) {
    const struct meeting* const one = &meetings[i];
    if (strcmp(one->name, name) != 0) continue;
    one->make();
    fflush(stdout);
    child = fork();
    if (child == 0) {
      printf("child: %.1f\n", meet(one, 0));
      fflush(stdout);
      _exit(0);
    }
    meet(one, 1);
    waitpid(child, NULL, 0);
    file = -1;
    child = fork();
    if (child == 0) {
      meet(one, 1);
      _exit(0);
    }
    printf("rank: %.1f\n", meet(one, 0));
    waitpid(child, NULL, 0);
    unlink(path);
    if (strcmp(name, "semop") == 0) semctl(object, 0, IPC_RMID);
    if (strcmp(name, "msgrcv") == 0) msgctl(object, IPC_RMID, NULL);
  }
  MPI_Finalize();
  return 0;
}
