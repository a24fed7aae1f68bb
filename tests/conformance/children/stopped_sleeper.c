// A child sleeps 10 ms and writes, four times. Another one stops it at 15 ms, and lets it go on at 35 ms.
// Prints when the bytes come, in ms.
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { bytes = 4 };

int main(int argc, char** argv) {
  int ends[2];
  MPI_Init(&argc, &argv);
  if (pipe(ends) != 0) return 1;
  const double began_s = MPI_Wtime();
  const pid_t writer = fork();
  if (writer == 0) {
    for (int i = 0; i < bytes; ++i) {
      usleep(10000);
      if (write(ends[1], "x", 1) != 1) _exit(1);
    }
    _exit(0);
  }
  if (fork() == 0) {
    usleep(15000);
    kill(writer, SIGSTOP);
    usleep(20000);
    kill(writer, SIGCONT);
    _exit(0);
  }
  for (int i = 0; i < bytes; ++i) {
    char byte = 0;
    if (read(ends[0], &byte, 1) != 1) return 1;
    printf("%.1f\n", 1e3 * (MPI_Wtime() - began_s));
  }
  while (wait(NULL) > 0) {
  }
  MPI_Finalize();
  return 0;
}
