// What a program does in a child by pthread_atfork, as libuv, which makes its pipe of signals anew: before
// MPI_Init and after it, beside a second thread. Prints the statuses of the children.
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int is_handled;

static void make_anew(void) {
  int pipes[2];
  struct timespec now;
  char byte = 1;
  pthread_mutex_lock(&lock);
  clock_gettime(CLOCK_MONOTONIC, &now);
  usleep(1000);
  is_handled = pipe(pipes) == 0 && write(pipes[1], &byte, 1) == 1 && read(pipes[0], &byte, 1) == 1;
  close(pipes[0]);
  close(pipes[1]);
  pthread_mutex_unlock(&lock);
}

static void* rest(void* unused) {
  usleep(1000);
  return unused;
}

static int fork_once(void) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    if (!is_handled) _exit(3);
    execlp("true", "true", (char*)NULL);
    _exit(4);
  }
  waitpid(child, &status, 0);
  return status;
}

int main(int argc, char** argv) {
  int rank;
  pthread_t thread;
  pthread_atfork(NULL, NULL, make_anew);
  pthread_create(&thread, NULL, rest, NULL);
  pthread_join(thread, NULL);
  const int before = fork_once();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int after = fork_once();
  printf("%d: %d %d\n", rank, before, after);
  MPI_Finalize();
  return 0;
}
