// A process stops its own child and lets it go on. Prints the code and the time of each SIGCHLD, and those of
// the one that it takes with sigtimedwait(), in ms.
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double began_s;

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (now.tv_sec + 1e-9 * now.tv_nsec - began_s);
}

enum { most = 8 };
static int heard;
static int codes[most];
static double times_ms[most];

static void hear(int signal, siginfo_t* info, void* context) {
  (void)signal;
  (void)context;
  if (heard == most) return;
  codes[heard] = info->si_code;
  times_ms[heard++] = now_ms();
}

static pid_t sleeps(void) {
  const pid_t child = fork();
  if (child < 0) exit(1);
  if (child > 0) return child;
  usleep(50000);
  _exit(0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  struct sigaction action = {.sa_sigaction = hear, .sa_flags = SA_SIGINFO};
  sigaction(SIGCHLD, &action, NULL);
  began_s = 1e-3 * now_ms();
  pid_t child = sleeps();
  usleep(10000);
  kill(child, SIGSTOP);
  usleep(10000);
  kill(child, SIGCONT);
  usleep(10000);
  waitpid(child, NULL, 0);
  for (int i = 0; i < heard; ++i) printf("%d at %.1f\n", codes[i], times_ms[i]);

  signal(SIGCHLD, SIG_DFL);
  sigset_t child_signal;
  sigemptyset(&child_signal);
  sigaddset(&child_signal, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child_signal, NULL);
  began_s += 1e-3 * now_ms();
  child = sleeps();
  usleep(10000);
  kill(child, SIGSTOP);
  siginfo_t info;
  const struct timespec limit = {.tv_sec = 1};
  if (sigtimedwait(&child_signal, &info, &limit) == SIGCHLD) printf("%d at %.1f\n", info.si_code, now_ms());
  kill(child, SIGCONT);
  waitpid(child, NULL, 0);
  MPI_Finalize();
  return 0;
}
