/* Rank 0 sends each other rank signals while it waits in different calls. The others print how the wait
   ended: error, runs of the handler, when it ran, when the wait ended, and what was left of it, in
   milliseconds. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t runs;
static double ran_ms;
static double began_ms;
static int value;
static int sender;

static double now_ms(void) {
  return MPI_Wtime() * 1e3;
}

static void handle(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  ++runs;
  value = info->si_code == SI_QUEUE ? info->si_value.sival_int : info->si_code == SI_USER ? 0 : -1;
  sender = info->si_pid;
  ran_ms = now_ms() - began_ms;
}

static const struct timespec length = {.tv_sec = 0, .tv_nsec = 50000000};
static double left_ms;

static int wait_nanosleep(void) {
  struct timespec left = {0};
  const int result = nanosleep(&length, &left);
  left_ms = (double)left.tv_nsec * 1e-6;
  return result;
}

static int wait_clock_nanosleep(void) {
  struct timespec left = {0};
  errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &length, &left);
  left_ms = (double)left.tv_nsec * 1e-6;
  return errno == 0 ? 0 : -1;
}

static int wait_usleep(void) {
  return usleep(50000);
}

static int wait_poll(void) {
  return poll(NULL, 0, 50);
}

static int wait_select(void) {
  struct timeval left = {.tv_usec = 50000};
  const int result = select(0, NULL, NULL, NULL, &left);
  left_ms = (double)left.tv_usec * 1e-3;
  return result;
}

static int own_pipe[2];

static int wait_poll_pipe(void) {
  struct pollfd file = {.fd = own_pipe[0], .events = POLLIN};
  return poll(&file, 1, 50);
}

/* The handler does not run. */
static int wait_sigtimedwait(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  siginfo_t info;
  const int taken = sigtimedwait(&set, &info, &length);
  value = taken == SIGUSR1 && info.si_code == SI_QUEUE ? info.si_value.sival_int : 0;
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  return taken == SIGUSR1 ? 0 : -1;
}

/* Goes on: the message comes after the signal. */
static int wait_recv(void) {
  int number = 0;
  MPI_Recv(&number, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return number - 7;
}

static int wait_ignored(void) {
  signal(SIGUSR1, SIG_IGN);
  return wait_nanosleep();
}

static const struct {
  const char* name;
  int (*wait)(void);
} waits[] = {
    {"nanosleep", wait_nanosleep},
    {"clock_nanosleep", wait_clock_nanosleep},
    {"usleep", wait_usleep},
    {"poll", wait_poll},
    {"select", wait_select},
    {"poll_of_pipe", wait_poll_pipe},
    {"sigtimedwait", wait_sigtimedwait},
    {"recv", wait_recv},
    {"ignored", wait_ignored},
};
enum { count = sizeof waits / sizeof waits[0] };

/* In three ways by turns. */
static void send(pid_t process, int way) {
  if (way == 0) kill(process, SIGUSR1);
  if (way == 1) syscall(SYS_kill, process, SIGUSR1);
  if (way == 2) sigqueue(process, SIGUSR1, (union sigval){.sival_int = 42});
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int processes[256];
  const int own = getpid();
  MPI_Allgather(&own, 1, MPI_INT, processes, 1, MPI_INT, MPI_COMM_WORLD);
  if (pipe(own_pipe) != 0) return 2;
  for (int i = 0; i < count; ++i) {
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    runs = 0;
    ran_ms = left_ms = 0;
    value = sender = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    began_ms = now_ms();
    if (rank == 0) {
      const struct timespec first = {.tv_nsec = 20000000};
      nanosleep(&first, NULL);
      for (int to = 1; to < size; ++to) send(processes[to], i % 3);
      nanosleep(&first, NULL);
      const int number = 7;
      for (int to = 1; to < size; ++to) {
        if (strcmp(waits[i].name, "recv") == 0) MPI_Send(&number, 1, MPI_INT, to, 5, MPI_COMM_WORLD);
      }
    } else {
      errno = 0;
      const int result = waits[i].wait();
      const int error = result < 0 ? errno : 0;
      const double ended_ms = now_ms() - began_ms;
      char line[128];
      snprintf(line, sizeof line, "%s %s %d %.0f %.0f %.0f %d %s\n", waits[i].name,
               error ? strerrorname_np(error) : "0", (int)runs, ran_ms, ended_ms, left_ms, value,
               sender == processes[0] ? "rank 0" : "-");
      for (int turn = 1; turn < size; ++turn) {
        if (turn == rank) printf("%d %s", rank, line);
      }
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
