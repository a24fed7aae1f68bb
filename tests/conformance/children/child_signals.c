// A handler of SIGCHLD without SA_RESTART reads the time while its process waits. Prints what the wait has
// returned, when it ended, and the code and time of the first signal, in ms.
//   child_signals WAIT exits|stops|stopped|killed
// At 10 ms a child exits or stops itself, or another one stops or kills it.
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double began_s;
static int code;
static double heard_ms = -1;

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (now.tv_sec + 1e-9 * now.tv_nsec - began_s);
}

static void hear(int signal, siginfo_t* info, void* context) {
  (void)signal;
  (void)context;
  if (heard_ms >= 0) return;
  code = info->si_code;
  heard_ms = now_ms();
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* hold(void* unused) {
  pthread_mutex_lock(&mutex);
  usleep(30000);
  pthread_mutex_unlock(&mutex);
  return unused;
}

static int await(const char* what, pid_t child, int file) {
  char byte;
  int status = 0;
  struct pollfd one = {.fd = file, .events = POLLIN};
  pthread_t holder;
  if (strcmp(what, "sleep") == 0) return usleep(30000);
  if (strcmp(what, "poll") == 0) return poll(&one, 1, 30);
  if (strcmp(what, "read") == 0) return (int)read(file, &byte, 1);
  if (strcmp(what, "pause") == 0) return pause();
  if (strcmp(what, "waitpid") == 0) return waitpid(child, &status, 0) == child;
  if (strcmp(what, "untraced") == 0) return waitpid(child, &status, WUNTRACED) == child;
  pthread_create(&holder, NULL, hold, NULL);
  usleep(1000);
  const int result = pthread_mutex_lock(&mutex);
  pthread_join(holder, NULL);
  return result;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* const how = argv[2];
  struct sigaction action = {.sa_sigaction = hear, .sa_flags = SA_SIGINFO};
  sigaction(SIGCHLD, &action, NULL);
  began_s += 1e-3 * now_ms();
  int files[2];
  if (pipe(files) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    usleep(10000);
    if (strcmp(how, "stops") == 0) raise(SIGSTOP);
    if (strcmp(how, "exits") != 0) usleep(20000);
    _exit(0);
  }
  if (strcmp(how, "stopped") == 0 || strcmp(how, "killed") == 0) {
    if (fork() == 0) {
      usleep(10000);
      kill(child, strcmp(how, "stopped") == 0 ? SIGSTOP : SIGKILL);
      usleep(40000);
      _exit(0);
    }
  }
  const int result = await(argv[1], child, files[0]);
  printf("%d %.1f, %d %.1f\n", result, now_ms(), code, heard_ms);
  fflush(stdout);
  kill(child, SIGCONT);
  while (wait(NULL) > 0 || errno == EINTR) continue;
  MPI_Finalize();
  return 0;
}
