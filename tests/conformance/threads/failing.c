// Threads that sleep and print, until one of rank 3 ends the run, or keeps the lock. The argument says how.
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../c/check.h"

enum { thread_count = 4, lines_of_thread = 20 };

static struct World world;
static const char* how;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void fail(void) {
  fflush(stdout);
  if (strcmp(how, "exit") == 0) exit(3);
  if (strcmp(how, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 5);
  if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(how, "lock") == 0) pthread_mutex_lock(&mutex);
}

static void* work(void* argument) {
  const int thread = *(const int*)argument;
  for (int i = 0; i < lines_of_thread; ++i) {
    usleep(10 + (unsigned)thread);
    pthread_mutex_lock(&mutex);
    printf("rank %d, thread %d: %d\n", world.rank, thread, i);
    pthread_mutex_unlock(&mutex);
    if (world.rank == 3 && thread == 2 && i == 9) fail();
  }
  return NULL;
}

int main(int argc, char** argv) {
  how = argv[1];
  world = begin_threaded_program(&argc, &argv);
  setvbuf(stdout, NULL, _IOLBF, 0);
  pthread_t threads[thread_count];
  int numbers[thread_count];
  for (int i = 0; i < thread_count; ++i) {
    numbers[i] = i;
    CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
  }
  for (int i = 0; i < thread_count; ++i) pthread_join(threads[i], NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  return end_program(world);
}
