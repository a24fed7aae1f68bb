/* Processes that a rank starts: each case prints its name, the virtual time that it took in ms, and what it
 * found. */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

static double began_s;

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void show(const char* name, long found) {
  printf("%s: %.3f ms, %ld\n", name, (now_s() - began_s) * 1e3, found);
  fflush(stdout);
  began_s = now_s();
}

static void sleep_ms(long ms) {
  const struct timespec duration = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
  nanosleep(&duration, NULL);
}

static pid_t sleeper(long ms, int code) {
  const pid_t child = fork();
  if (child != 0) return child;
  sleep_ms(ms);
  _exit(code);
}

static pid_t program(const char* seconds) {
  char* const arguments[] = {"sleep", (char*)seconds, NULL};
  pid_t child = 0;
  if (posix_spawnp(&child, "sleep", NULL, NULL, arguments, environ) != 0) exit(1);
  return child;
}

static void compute(void) {
  volatile double sum = 0;
  for (long i = 0; i < 20000000; ++i) sum += (double)i;
}

static void leave(int signal) {
  _exit(signal == SIGTERM ? 7 : 1);
}

static volatile sig_atomic_t ends;
static void count_end(int signal) {
  ends += signal == SIGCHLD;
}

static volatile sig_atomic_t alarms;
static void count_alarm(int signal) {
  alarms += signal == SIGALRM;
}

static int take_alarms(void) {
  const struct sigaction action = {.sa_handler = count_alarm};
  sigaction(SIGALRM, &action, NULL);
  alarm(1);
  const unsigned left = sleep(5);
  ualarm(300000, 0);
  const int error = pause();
  return alarms == 2 && left == 4 && error == -1 ? 0 : 1;
}

// A handler that wakes the program's own loop.
static int bell;
static void ring(int signal) {
  const uint64_t one = 1;
  if (write(bell, &one, sizeof one) != sizeof one) _exit(signal);
}

static void hear(void) {
  uint64_t rings = 0;
  struct pollfd polled = {.fd = bell, .events = POLLIN};
  poll(&polled, 1, -1);
  if (read(bell, &rings, sizeof rings) < 0 && errno != EAGAIN) _exit(1);
}

static int sleep_briefly(void* argument) {
  sleep_ms(100);
  return *(const int*)argument;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int repeats = argc > 1 ? atoi(argv[1]) : 20;
  int status = 0;
  began_s = now_s();

  waitpid(sleeper(250, 3), &status, 0);
  show("fork", WEXITSTATUS(status));

  long polls = 0;
  const pid_t checked = sleeper(300, 0);
  for (; waitpid(checked, &status, WNOHANG) == 0; ++polls) sleep_ms(40);
  show("polls", polls);

  pid_t several[4];
  const long sleeps_ms[4] = {300, 100, 400, 200};
  for (int i = 0; i < 4; ++i) several[i] = sleeper(sleeps_ms[i], i);
  long order = 0;
  for (int i = 0; i < 4; ++i) {
    wait(&status);
    order = 10 * order + WEXITSTATUS(status);
  }
  show("any of four", order);
  (void)several;

  for (int i = 0; i < repeats; ++i) waitpid(program("0.1"), &status, 0);
  show("programs", WEXITSTATUS(status));

  for (int i = 0; i < 4; ++i) several[i] = program("0.2");
  for (int i = 0; i < 4; ++i) waitpid(several[i], &status, 0);
  show("programs at once", WEXITSTATUS(status));

  const pid_t quick = fork();
  if (quick == 0) {
    compute();
    _exit(4);
  }
  polls = 0;
  for (; waitpid(quick, &status, WNOHANG) == 0; ++polls) sleep_ms(10);
  show("computes", polls);

  const pid_t killed = sleeper(100000, 0);
  sleep_ms(500);
  kill(killed, SIGKILL);
  waitpid(killed, &status, 0);
  show("killed", WTERMSIG(status));

  const pid_t handles = fork();
  if (handles == 0) {
    signal(SIGTERM, leave);
    sleep_ms(100000);
    _exit(0);
  }
  sleep_ms(500);
  kill(handles, SIGTERM);
  waitpid(handles, &status, 0);
  show("handles", WEXITSTATUS(status));

  const pid_t stopped = sleeper(100, 0);
  kill(stopped, SIGSTOP);
  sleep_ms(500);
  kill(stopped, SIGCONT);
  waitpid(stopped, &status, 0);
  show("stopped", WEXITSTATUS(status));

  struct sigaction action = {.sa_handler = count_end};
  sigaction(SIGCHLD, &action, NULL);
  const pid_t tells = sleeper(300, 0);
  sleep(10);
  show("its end ends a sleep", ends);
  waitpid(tells, &status, 0);
  signal(SIGCHLD, SIG_DFL);

  status = system("sleep 0.1; exit 5");
  show("system", WEXITSTATUS(status));

  char line[16] = "";
  FILE* output = popen("sleep 0.1; echo 42; sleep 0.1", "r");
  if (fgets(line, sizeof line, output) == NULL) return 1;
  status = pclose(output);
  show("popen", atol(line));

  status = system("sleep 0.1 & sleep 0.3 & wait; (sleep 0.1; exit 6)");
  show("children of a child", WEXITSTATUS(status));

  const pid_t vforked = vfork();
  if (vforked == 0) {
    execlp("sleep", "sleep", "0.15", (char*)NULL);
    _exit(127);
  }
  waitpid(vforked, &status, 0);
  show("vfork", WEXITSTATUS(status));

  const pid_t failed = vfork();
  if (failed == 0) {
    execlp("/no/such/program", "program", (char*)NULL);
    _exit(9);
  }
  waitpid(failed, &status, 0);
  show("no program", WEXITSTATUS(status));

  int before = 0;
  for (int i = 0; i < 3; ++i) {
    siginfo_t info = {0};
    const pid_t child = sleeper(100 * (i + 1), i);
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    waitid(P_ALL, 0, &info, WEXITED);
    before += info.si_status;
  }
  show("waitid", before);

  static char stack[65536];
  int code = 5;
  const pid_t cloned = clone(sleep_briefly, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &code);
  waitpid(cloned, &status, 0);
  show("clone", WEXITSTATUS(status));

  status = system("exec perl -e '$SIG{ALRM} = sub { exit 7 }; alarm 1; sleep 5'");
  show("alarm of a program", WEXITSTATUS(status));

  const pid_t alarmed = fork();
  if (alarmed == 0) _exit(take_alarms());
  waitpid(alarmed, &status, 0);
  show("alarms of a fork", WEXITSTATUS(status));

  const pid_t rung = fork();
  if (rung == 0) {
    bell = eventfd(0, EFD_NONBLOCK);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = ring}, NULL);
    _exit(poll(&(struct pollfd){.fd = bell, .events = POLLIN}, 1, 100000) == 0 ? 1 : 2);
  }
  sleep_ms(500);
  kill(rung, SIGTERM);
  waitpid(rung, &status, 0);
  show("its handler writes", WEXITSTATUS(status));

  // As Ruby waits: the handler of SIGCHLD wakes a loop that checks.
  bell = eventfd(0, EFD_NONBLOCK);
  sigaction(SIGCHLD, &(struct sigaction){.sa_handler = ring}, NULL);
  for (int i = 0; i < 10; ++i) {
    const pid_t ended = fork();
    if (ended == 0) {
      signal(SIGTERM, leave);
      sleep_ms(100000);
      _exit(0);
    }
    sleep_ms(50);
    kill(ended, SIGTERM);
    while (waitpid(ended, &status, WNOHANG) == 0) hear();
  }
  show("checks when told", WEXITSTATUS(status));
  signal(SIGCHLD, SIG_DFL);

  // timeout waits in sigsuspend for the end of its child and for its timer.
  show("over its limit", WEXITSTATUS(system("timeout 1 sleep 5; exit $?")));
  show("within its limit", WEXITSTATUS(system("timeout 5 sleep 1; exit $?")));
  MPI_Finalize();
  return 0;
}
