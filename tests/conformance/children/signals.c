/* What ends a wait for a pipe, a child or a signal beside a child: each line has the place, the call, the
 * signal, the result, and the virtual time in s. A signal that is `in` is blocked but for the call, one that
 * is `out` is blocked by the call's mask alone, and `again` is out with SA_RESTART. The signal comes after 1
 * s, the limit of the calls is 3 s, and the pipe's end comes after 5 s. */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void handle(int signal) {
  (void)signal;
}

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void sleep_s(long s) {
  const struct timespec duration = {.tv_sec = s, .tv_nsec = 0};
  nanosleep(&duration, NULL);
}

static int call(const char* name, int file, pid_t child, const sigset_t* mask) {
  const struct timespec limit = {.tv_sec = 3, .tv_nsec = 0};
  fd_set files;
  FD_ZERO(&files);
  FD_SET(file, &files);
  struct pollfd one = {.fd = file, .events = POLLIN, .revents = 0};
  char byte = 0;
  if (strcmp(name, "pselect") == 0) return pselect(file + 1, &files, NULL, NULL, &limit, mask);
  if (strcmp(name, "pselect, no limit") == 0) return pselect(file + 1, &files, NULL, NULL, NULL, mask);
  if (strcmp(name, "ppoll") == 0) return ppoll(&one, 1, &limit, mask);
  if (strcmp(name, "poll") == 0) return poll(&one, 1, 3000);
  if (strcmp(name, "pselect, no files") == 0) return pselect(0, NULL, NULL, NULL, &limit, mask);
  if (strcmp(name, "ppoll, no files") == 0) return ppoll(NULL, 0, &limit, mask);
  siginfo_t end;
  if (strcmp(name, "waitid") == 0) return waitid(P_PID, (id_t)child, &end, WEXITED | WNOWAIT);
  return (int)read(file, &byte, 1);
}

static void await_end(pid_t child) {
  while (waitpid(child, NULL, 0) < 0 && errno == EINTR) continue;
}

static void run(const char* place, const char* name, int signal, const char* how) {
  sigset_t set;
  sigset_t none;
  sigset_t before;
  sigemptyset(&none);
  sigemptyset(&set);
  sigaddset(&set, signal);
  const bool is_in = strcmp(how, "in") == 0;
  const struct sigaction action = {.sa_handler = handle,
                                   .sa_flags = strcmp(how, "again") == 0 ? SA_RESTART : 0};
  struct sigaction usual;
  sigaction(signal, &action, &usual);
  sigprocmask(SIG_BLOCK, is_in ? &set : &none, &before);
  int of_child[2];
  int of_nobody[2];
  if (pipe(of_child) != 0 || pipe(of_nobody) != 0) _exit(2);
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child == 0) {
    sleep_s(1);
    if (signal == SIGUSR1) kill(self, signal);
    if (signal != SIGCHLD) sleep_s(4);
    _exit(0);
  }
  close(of_child[1]);
  if (signal == SIGALRM) alarm(1);
  const double begin_s = now_s();
  const int file = signal == SIGCHLD ? of_nobody[0] : of_child[0];
  const int result = call(name, file, child, is_in ? &none : &set);
  const char* error = result < 0 ? strerrorname_np(errno) : "-";
  printf("%s: %s: %s %s: %d %s %.3f\n", place, name, strsignal(signal), how, result, error,
         now_s() - begin_s);
  fflush(stdout);
  kill(child, SIGKILL);
  await_end(child);
  sigprocmask(SIG_SETMASK, &before, NULL);
  sigaction(signal, &usual, NULL);
  close(of_child[0]);
  close(of_nobody[0]);
  close(of_nobody[1]);
}

static void run_all(const char* place) {
  const int signals[] = {SIGCHLD, SIGUSR1, SIGALRM};
  for (int i = 0; i < 3; ++i) {
    run(place, "pselect", signals[i], "in");
    run(place, "pselect", signals[i], "out");
    run(place, "pselect, no limit", signals[i], "in");
    run(place, "ppoll", signals[i], "in");
    run(place, "ppoll", signals[i], "out");
    run(place, "poll", signals[i], "out");
    run(place, "poll", signals[i], "again");
    run(place, "pselect, no files", signals[i], "in");
    run(place, "ppoll, no files", signals[i], "in");
    run(place, "ppoll, no files", signals[i], "out");
    run(place, "read", signals[i], "out");
    if (signals[i] == SIGCHLD) continue;
    run(place, "read", signals[i], "again");
    run(place, "waitid", signals[i], "out");
    run(place, "waitid", signals[i], "again");
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  run_all("rank");
  const pid_t child = fork();
  if (child == 0) {
    run_all("child");
    _exit(0);
  }
  await_end(child);
  MPI_Finalize();
  return 0;
}
