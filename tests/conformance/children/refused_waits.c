// Waits that the kernel refuses, while a child lives. A line for each: errno and when it returned.
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double begin_s;

static void tell(const char* call, long result) {
  printf("%s %d at %.3f s\n", call, result < 0 ? errno : 0, MPI_Wtime() - begin_s);
}

int main(int argc, char** argv) {
  enum { no_flag = 0x10000 };
  MPI_Init(&argc, &argv);
  begin_s = MPI_Wtime();
  const pid_t child = fork();
  if (child < 0) exit(1);
  if (child == 0) {
    usleep(200000);
    _exit(0);
  }
  struct rusage use;
  siginfo_t info;
  tell("waitpid", waitpid(child, NULL, no_flag));
  tell("wait3", wait3(NULL, no_flag, &use));
  tell("wait4", wait4(-1, NULL, WEXITED, &use));
  tell("waitid", waitid(P_PID, (id_t)child, &info, WEXITED | no_flag));
  tell("waitid for nothing", waitid(P_PID, (id_t)child, &info, 0));
  tell("waitpid", waitpid(child, NULL, WUNTRACED | WCONTINUED));
  MPI_Finalize();
  return 0;
}
