/* A child starts a process that sleeps for 3 s. Its first thread ends at 0.5 s, and its other one, which
 * computes for some time of the host, ends it. The rank waits for the child. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int ends;

static void* compute(void* argument) {
  while (!ends) continue;
  volatile unsigned long count = 0;
  while (count < 300000000) ++count;
  _exit(7);
  return argument;
}

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  const double begin_s = MPI_Wtime();
  const pid_t child = fork();
  if (child == 0) {
    if (fork() == 0) {
      sleep(3);
      _exit(0);
    }
    pthread_t other;
    pthread_create(&other, NULL, compute, NULL);
    usleep(500000);
    ends = 1;
    syscall(SYS_exit, 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("%d %.3f\n", WEXITSTATUS(status), MPI_Wtime() - begin_s);
  MPI_Finalize();
  return 0;
}
