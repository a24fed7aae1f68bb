// MPI_THREAD_MULTIPLE: two threads of each rank exchange messages at the same time.
#include <pthread.h>

#include "check.h"

enum { rounds = 200, words = 3000 };

struct Worker {
  struct World world;
  MPI_Comm comm;
  int number;
};

static void* exchange(void* argument) {
  const struct Worker* worker = argument;
  const int right = (worker->world.rank + 1) % worker->world.size;
  const int left = (worker->world.rank + worker->world.size - 1) % worker->world.size;
  int* outgoing = malloc(words * sizeof(int));
  int* incoming = malloc(words * sizeof(int));
  for (int i = 0; i < rounds; ++i) {
    const int count = i % 8 == 0 ? words : 5;
    const int message = 1000 * worker->number + i;
    for (int k = 0; k < count; ++k) outgoing[k] = pattern(worker->world.rank, message, k);
    MPI_Sendrecv(outgoing, count, MPI_INT, right, i, incoming, count, MPI_INT, left, i, worker->comm,
                 MPI_STATUS_IGNORE);
    for (int k = 0; k < count; ++k) CHECK(incoming[k] == pattern(left, message, k));
  }
  free(outgoing);
  free(incoming);
  return NULL;
}

int main(int argc, char** argv) {
  const struct World world = begin_threaded_program(&argc, &argv);
  struct Worker workers[2] = {{world, MPI_COMM_WORLD, 1}, {world, MPI_COMM_NULL, 2}};
  MPI_Comm_dup(MPI_COMM_WORLD, &workers[1].comm);
  pthread_t thread;
  pthread_create(&thread, NULL, exchange, &workers[1]);
  exchange(&workers[0]);
  pthread_join(thread, NULL);
  MPI_Comm_free(&workers[1].comm);
  return end_program(world);
}
