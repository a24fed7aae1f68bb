// Signals of the terminal to a child whose group is orphaned: the kernel ignores them. Prints the child's
// status and when it has ended.
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
  enum { rounds = 4 };
  static const int signals[] = {SIGTSTP, SIGTTIN, SIGTTOU};
  MPI_Init(&argc, &argv);
  const double begin_s = MPI_Wtime();
  int ready[2];
  char byte = 0;
  if (pipe(ready) != 0) exit(1);
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    usleep(200000);
    _exit(3);
  }
  if (child < 0 || read(ready[0], &byte, 1) != 1) exit(1);
  for (int i = 0; i < rounds; ++i) {
    for (int k = 0; k < 3; ++k) kill(child, signals[k]);
  }
  int status = 0;
  waitpid(child, &status, WUNTRACED);
  printf("%d at %.3f s\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1, MPI_Wtime() - begin_s);
  MPI_Finalize();
  return 0;
}
