// A parent waits for a child to be stopped, to go on, and to end. Prints what it hears and when, in ms.
//   stopped_child at-once|itself|thread|tkill|unblocks|pidfd|sibling|waitid|plain
// at-once: the parent stops it as soon as it has forked; itself, thread, tkill: it stops itself at 10 ms;
// unblocks: a stop that it has blocked comes then; pidfd: the parent stops it at 5 ms by its descriptor;
// sibling: another one stops it at 15 ms, while the parent waits; waitid: so, with waitid(); plain: the
// parent waits for its end only.
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static double began_s;

static void tell(const char* what) {
  printf("%s %.1f\n", what, 1e3 * (MPI_Wtime() - began_s));
}

static void hear(pid_t child, int flags) {
  int status = 0;
  if (waitpid(child, &status, flags) != child) {
    tell("nothing");
  } else if (WIFSTOPPED(status)) {
    tell("stopped");
  } else {
    tell(WIFCONTINUED(status) ? "continued" : "ended");
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* const how = argv[1];
  const int is_by_sibling =
      strcmp(how, "sibling") == 0 || strcmp(how, "waitid") == 0 || strcmp(how, "plain") == 0;
  began_s = MPI_Wtime();
  const pid_t child = fork();
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  if (child == 0) {
    setpgid(0, 0);
    if (strcmp(how, "unblocks") == 0) {
      sigprocmask(SIG_BLOCK, &stop, NULL);
      raise(SIGTSTP);
    }
    usleep(10000);
    if (strcmp(how, "tkill") == 0) syscall(SYS_tkill, gettid(), SIGSTOP);
    sigprocmask(SIG_UNBLOCK, &stop, NULL);
    if (strcmp(how, "itself") == 0) raise(SIGSTOP);
    if (strcmp(how, "thread") == 0) pthread_kill(pthread_self(), SIGSTOP);
    usleep(10000);
    _exit(0);
  }
  if (is_by_sibling && fork() == 0) {
    usleep(15000);
    kill(child, SIGSTOP);
    if (strcmp(how, "plain") != 0) _exit(0);
    usleep(25000);
    kill(child, SIGCONT);
    _exit(0);
  }
  if (strcmp(how, "at-once") == 0) kill(child, SIGSTOP);
  if (strcmp(how, "pidfd") == 0) {
    usleep(5000);
    syscall(SYS_pidfd_send_signal, syscall(SYS_pidfd_open, child, 0), SIGSTOP, NULL, 0);
  }
  if (strcmp(how, "plain") != 0) {
    siginfo_t info = {0};
    if (strcmp(how, "waitid") != 0) {
      hear(child, WUNTRACED);
    } else if (waitid(P_PID, (id_t)child, &info, WEXITED | WSTOPPED) == 0) {
      tell(info.si_code == CLD_STOPPED ? "stopped" : "ended");
    }
    hear(child, WUNTRACED | WNOHANG);
    usleep(4000);
    kill(child, SIGCONT);
    hear(child, WCONTINUED);
  }
  hear(child, strcmp(how, "plain") == 0 ? 0 : WUNTRACED);
  MPI_Finalize();
  return 0;
}
