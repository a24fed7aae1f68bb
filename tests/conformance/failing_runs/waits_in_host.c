// Each rank waits in the host in its own way for what can never come. The first argument names a folder; the
// second one is the number of ranks that do, the others wait in MPI for them.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../c/check.h"

static const char* folder;
static char path[4096];

static const char* path_of(const char* name) {
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void ignore(int signal) {
  (void)signal;
}

static sigset_t blocked_signal(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  return set;
}

static void wait_in_sigwait(void) {
  const sigset_t set = blocked_signal();
  int signal = 0;
  sigwait(&set, &signal);
}

static void wait_in_pause(void) {
  signal(SIGUSR1, ignore);
  pause();
}

static void wait_in_sigsuspend(void) {
  sigset_t none;
  sigemptyset(&none);
  sigsuspend(&none);
}

static void read_signalfd(void) {
  const sigset_t set = blocked_signal();
  struct signalfd_siginfo came;
  if (read(signalfd(-1, &set, 0), &came, sizeof came) < 0) exit(3);
}

static void wait_in_semop(void) {
  struct sembuf down = {.sem_op = -1};
  const int set = semget(IPC_PRIVATE, 1, 0600);
  semop(set, &down, 1);
}

static void wait_in_msgrcv(void) {
  struct {
    long type;
    char byte;
  } message;
  const int queue = msgget(IPC_PRIVATE, 0600);
  msgrcv(queue, &message, 1, 0, 0);
}

static void wait_in_mq_receive(void) {
  char name[64];
  char bytes[8];
  struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = sizeof bytes};
  snprintf(name, sizeof name, "/apenet-test.%d", (int)getpid());
  const mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
  mq_unlink(name);
  mq_receive(queue, bytes, sizeof bytes, NULL);
}

static void read_eventfd(void) {
  uint64_t count = 0;
  if (read(eventfd(0, 0), &count, sizeof count) < 0) exit(4);
}

static void read_inotify(void) {
  char events[4096];
  if (read(inotify_init(), events, sizeof events) < 0) exit(5);
}

// Nobody can find this socket any more.
static void wait_in_accept(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "/tmp/apenet-test.%d", (int)getpid());
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, 1) != 0) exit(6);
  unlink(address.sun_path);
  accept(listener, NULL, NULL);
}

// Two ranks open the reading end.
static void open_fifo(void) {
  if (mkfifo(path_of("fifo"), 0600) != 0 && errno != EEXIST) exit(7);
  if (open(path_of("fifo"), O_RDONLY) < 0) exit(8);
}

static void splice_pipe(void) {
  int from[2];
  int to[2];
  if (pipe(from) != 0 || pipe(to) != 0) exit(9);
  splice(from[0], NULL, to[1], NULL, 1, 0);
}

static void poll_nothing(void) {
  poll(NULL, 0, -1);
}

static void await_stopped_child(void) {
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

// The child stops at its signal, and its tracer never lets it go on.
static void await_traced_child(void) {
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGUSR1);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  waitpid(child, NULL, 0);
}

static void (*const ways[])(void) = {
    wait_in_sigwait,    wait_in_pause, wait_in_sigsuspend,  read_signalfd,      wait_in_semop, wait_in_msgrcv,
    wait_in_mq_receive, read_eventfd,  read_inotify,        wait_in_accept,     open_fifo,     open_fifo,
    splice_pipe,        poll_nothing,  await_stopped_child, await_traced_child,
};

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  folder = argv[1];
  const struct World world = begin_program(&argc, &argv);
  if (world.rank < atoi(argv[2])) ways[world.rank]();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
