// Thread 1 spins on memory within a call of MPI, until thread 0 has taken a lock and changed that memory.
// With an argument, thread 0 waits for thread 1 at a semaphore before.
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>

#include "../c/check.h"

static volatile int is_changed;
static int has_begun;  // under the lock
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t semaphore;

static int spin(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  (void)comm, (void)key, (void)extra, (void)in, (void)out;
  pthread_mutex_lock(&mutex);
  has_begun = 1;
  pthread_mutex_unlock(&mutex);
  sem_post(&semaphore);
  while (!is_changed) continue;
  *flag = 0;
  return MPI_SUCCESS;
}

static void* duplicate(void* unused) {
  (void)unused;
  int key = 0;
  MPI_Comm copy;
  MPI_Comm_create_keyval(spin, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  MPI_Comm_dup(MPI_COMM_SELF, &copy);
  MPI_Comm_free(&copy);
  return NULL;
}

int main(int argc, char** argv) {
  const struct World world = begin_threaded_program(&argc, &argv);
  pthread_t thread;
  CHECK(sem_init(&semaphore, 0, 0) == 0);
  CHECK(pthread_create(&thread, NULL, duplicate, NULL) == 0);
  if (argc > 1) sem_wait(&semaphore);
  while (!is_changed) {
    pthread_mutex_lock(&mutex);
    is_changed = has_begun;
    pthread_mutex_unlock(&mutex);
    sched_yield();
  }
  pthread_join(thread, NULL);
  return end_program(world);
}
