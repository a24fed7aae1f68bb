// Two threads with a name of two lines wait for each other: the second for a lock, the first for its end.
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <sys/prctl.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* lock(void* argument) {
  prctl(PR_SET_NAME, "a\n) R 1");
  pthread_mutex_lock(&mutex);
  return argument;
}

int main(int argc, char** argv) {
  prctl(PR_SET_NAME, "a\n) R 1");
  MPI_Init(&argc, &argv);
  pthread_mutex_lock(&mutex);
  pthread_t thread;
  pthread_create(&thread, NULL, lock, NULL);
  pthread_join(thread, NULL);
  MPI_Finalize();
}
