// Ranks that wait in the host; the first argument selects for what. The second one names a folder.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../c/check.h"

static struct World world;
static const char* folder;

static void* waits_for_a_signal_of_nobody(void* argument) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&mutex);
  pthread_cond_wait(&condition, &mutex);
  return argument;
}

static void join(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, waits_for_a_signal_of_nobody, NULL);
  pthread_join(thread, NULL);
}

static void own_lock(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&mutex);
}

static void semaphore(void) {
  sem_t own;
  sem_init(&own, 0, 0);
  sem_wait(&own);
}

static void own_pipe(void) {
  int ends[2];
  char byte = 0;
  if (pipe(ends) != 0 || read(ends[0], &byte, 1) != 1) exit(3);
}

// The child reads what the rank would write after the child has ended.
static void child(void) {
  int ends[2];
  char byte = 0;
  if (pipe(ends) != 0) exit(3);
  const pid_t process = fork();
  if (process == 0) _exit(read(ends[0], &byte, 1) == 1 ? 0 : 1);
  waitpid(process, NULL, 0);
}

static int open_file(int rank, const char* suffix, int flags) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%d%s", folder, rank, suffix);
  const int file = open(path, flags, 0600);
  if (file < 0) exit(4);
  return file;
}

// Each rank holds the lock on its own file and requests that on the next one's.
static void file_locks(void) {
  flock(open_file(world.rank, ".lock", O_RDWR | O_CREAT), LOCK_EX);
  MPI_Barrier(MPI_COMM_WORLD);
  flock(open_file((world.rank + 1) % world.size, ".lock", O_RDWR), LOCK_EX);
}

// Each rank reads first from the fifo into which the next one would write then.
static void fifos(void) {
  char path[4096];
  char byte = 0;
  snprintf(path, sizeof path, "%s/%d.fifo", folder, world.rank);
  if (mkfifo(path, 0600) != 0) exit(5);
  MPI_Barrier(MPI_COMM_WORLD);
  const int own = open_file(world.rank, ".fifo", O_RDWR);
  const int next = open_file((world.rank + 1) % world.size, ".fifo", O_RDWR);
  if (read(own, &byte, 1) != 1 || write(next, &byte, 1) != 1) exit(6);
}

static void socket_pair(void) {
  int ends[2];
  char byte = 0;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || read(ends[0], &byte, 1) != 1) exit(7);
}

// The rank and a process that it has started, each at its own end.
static void socket_of_a_child(void) {
  int ends[2];
  char byte = 0;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) exit(7);
  const pid_t process = fork();
  close(ends[process == 0 ? 0 : 1]);
  if (read(ends[process == 0 ? 1 : 0], &byte, 1) != 1) _exit(7);
}

static void socket_with_a_limit(void) {
  int ends[2];
  char byte = 0;
  const struct timeval limit = {.tv_sec = 2, .tv_usec = 500000};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) exit(7);
  if (setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0) exit(8);
  if (read(ends[0], &byte, 1) != -1) exit(9);
}

static void poll_of_a_pipe(void) {
  int ends[2];
  if (pipe(ends) != 0) exit(3);
  struct pollfd polled = {.fd = ends[0], .events = POLLIN};
  poll(&polled, 1, -1);
}

// The lock is released by a rank that waits for a message meanwhile: no deadlock.
static void lock_of_a_receiver(void) {
  int value = 0;
  const int file = open_file(0, ".lock", O_RDWR | O_CREAT);
  if (world.rank == 1) flock(file, LOCK_EX);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world.rank == 0) flock(file, LOCK_EX);
  if (world.rank == 1) {
    MPI_Recv(&value, 1, MPI_INT, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    flock(file, LOCK_UN);
  }
  if (world.rank == 2) MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
}

// The child ends when another rank, which waits for a message meanwhile, closes its pipe: no deadlock.
static void child_of_a_receiver(void) {
  int value = 0;
  char byte = 0;
  char path[4096];
  snprintf(path, sizeof path, "%s/0.fifo", folder);
  if (world.rank == 0 && mkfifo(path, 0600) != 0) exit(5);
  MPI_Barrier(MPI_COMM_WORLD);
  const int fifo = open_file(0, ".fifo", O_RDWR);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world.rank == 0) {
    const pid_t process = fork();
    if (process == 0) _exit(read(fifo, &byte, 1) == 1 ? 0 : 1);
    waitpid(process, NULL, 0);
  }
  if (world.rank == 1) {
    MPI_Recv(&value, 1, MPI_INT, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (write(fifo, "x", 1) != 1) exit(6);
  }
  if (world.rank == 2) MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
}

// From here on: something outside the run can go on.
static void standard_input(void) {
  char byte = 0;
  printf("reads\n");
  fflush(stdout);
  if (read(STDIN_FILENO, &byte, 1) < 0) exit(8);
}

static void server(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof address;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, 1) != 0) exit(9);
  getsockname(listener, (struct sockaddr*)&address, &length);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  if (accept(listener, NULL, NULL) < 0) exit(10);
}

static void process_that_sleeps(void) {
  char command[64];
  snprintf(command, sizeof command, "exec sleep %s", folder);
  if (system(command) != 0) exit(11);
}

static sem_t rung;

static void ring(int signal) {
  (void)signal;
  sem_post(&rung);
}

// A timer of the host will end the wait, later than a deadlock would be reported. The argument: its kind.
static void timer(void) {
  const struct itimerval after = {.it_value = {.tv_sec = 2}};
  sem_init(&rung, 0, 0);
  signal(SIGALRM, ring);
  if (strcmp(folder, "alarm") == 0) alarm(2);
  if (strcmp(folder, "setitimer") == 0) setitimer(ITIMER_REAL, &after, NULL);
  if (strcmp(folder, "timer_create") == 0) {
    timer_t made;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    const struct itimerspec same = {.it_value = {.tv_sec = 2}};
    if (timer_create(CLOCK_MONOTONIC, &event, &made) != 0) exit(12);
    timer_settime(made, 0, &same, NULL);
  }
  while (sem_wait(&rung) != 0) continue;
}

// The timer has rung before: nothing ends the second wait.
static void timer_that_rang(void) {
  sem_init(&rung, 0, 0);
  signal(SIGALRM, ring);
  ualarm(1000, 0);
  while (sem_wait(&rung) != 0) continue;
  semaphore();
}

static const struct {
  const char* name;
  void (*run)(void);
} cases[] = {
    {"join", join},
    {"own-lock", own_lock},
    {"semaphore", semaphore},
    {"own-pipe", own_pipe},
    {"child", child},
    {"file-locks", file_locks},
    {"fifos", fifos},
    {"socket-pair", socket_pair},
    {"socket-of-a-child", socket_of_a_child},
    {"poll", poll_of_a_pipe},
    {"lock-of-a-receiver", lock_of_a_receiver},
    {"child-of-a-receiver", child_of_a_receiver},
    {"standard-input", standard_input},
    {"server", server},
    {"process", process_that_sleeps},
    {"socket-with-a-limit", socket_with_a_limit},
    {"timer", timer},
    {"timer-that-rang", timer_that_rang},
};

// The third argument: when the case runs. "one": in the first rank, while the others wait for it in MPI.
int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const char* when = argv[3];
  folder = argv[2];
  void (*run)(void) = NULL;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    if (strcmp(argv[1], cases[i].name) == 0) run = cases[i].run;
  }
  if (run == NULL) return 2;
  if (strcmp(when, "before") == 0) run();
  world = begin_program(&argc, &argv);
  if (strcmp(when, "all") == 0 || (strcmp(when, "one") == 0 && world.rank == 0)) run();
  MPI_Barrier(MPI_COMM_WORLD);
  if (world.rank == 0) printf("done\n");
  MPI_Finalize();
  if (strcmp(when, "after") == 0) run();
  return 0;
}
