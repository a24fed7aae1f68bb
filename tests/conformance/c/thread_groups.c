// Threads that create communicators at the same time, each its own: a waiting thread must let the others use
// the library.
#include <pthread.h>

#include "check.h"

enum { thread_count = 4, rounds = 25 };

static MPI_Comm comms[thread_count];
static pthread_mutex_t own_turn = PTHREAD_MUTEX_INITIALIZER;

static void* work(void* argument) {
  const int thread = *(const int*)argument;
  for (int round = 0; round < rounds; ++round) {
    MPI_Group group;
    MPI_Comm made;
    MPI_Comm own;
    MPI_Comm_group(comms[thread], &group);
    MPI_Comm_create_group(comms[thread], group, thread, &made);
    MPI_Group_free(&group);
    MPI_Barrier(made);
    MPI_Comm_free(&made);
    // A collective call of all threads on one communicator, one after another.
    pthread_mutex_lock(&own_turn);
    MPI_Comm_dup(MPI_COMM_SELF, &own);
    pthread_mutex_unlock(&own_turn);
    MPI_Barrier(own);
    MPI_Comm_free(&own);
  }
  return NULL;
}

int main(int argc, char** argv) {
  const struct World world = begin_threaded_program(&argc, &argv);
  pthread_t threads[thread_count];
  int numbers[thread_count];
  for (int i = 0; i < thread_count; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int i = 0; i < thread_count; ++i) {
    numbers[i] = i;
    CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
  }
  for (int i = 0; i < thread_count; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < thread_count; ++i) MPI_Comm_free(&comms[i]);
  return end_program(world);
}
