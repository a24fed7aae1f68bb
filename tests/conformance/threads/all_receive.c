// Eight threads a rank that all send, probe and receive with one tag, and print what they have got.
#include <pthread.h>
#include <stdio.h>

#include "../c/check.h"

enum { thread_count = 8, rounds = 40 };

static struct World world;

static void* work(void* argument) {
  const int thread = *(const int*)argument;
  unsigned sum = 0;
  unsigned draw = (unsigned)(thread * 7 + world.rank * 131 + 1);
  for (int round = 0; round < rounds; ++round) {
    const int distance = 1 + round % (world.size - 1);
    const int to = (world.rank + distance) % world.size;
    const int from = (world.rank - distance + world.size) % world.size;
    const int out = world.rank * 10000 + thread * 100 + round;
    int in = 0;
    MPI_Request request;
    MPI_Isend(&out, 1, MPI_INT, to, 0, MPI_COMM_WORLD, &request);
    draw = draw * 1664525U + 1013904223U;
    if (draw >> 31 != 0) {
      MPI_Message message;
      MPI_Mprobe(from, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
      MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(&in, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(in / 10000 == from);
    sum = sum * 31U + (unsigned)in;
    if (round % 10 == 0) printf("rank %d, thread %d: %u at %.9f\n", world.rank, thread, sum, MPI_Wtime());
  }
  return NULL;
}

int main(int argc, char** argv) {
  world = begin_threaded_program(&argc, &argv);
  pthread_t threads[thread_count];
  int numbers[thread_count];
  for (int i = 0; i < thread_count; ++i) {
    numbers[i] = i;
    CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
  }
  for (int i = 0; i < thread_count; ++i) pthread_join(threads[i], NULL);
  return end_program(world);
}
