// Many threads of a rank sleep, each three times. Prints how many have woken at the wrong time, and when the
// last did.
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { rounds = 3, most_threads = 2000 };

static double woken_s[most_threads];

static void* sleeps(void* argument) {
  const long number = (long)argument;
  for (int round = 0; round < rounds; ++round) usleep((useconds_t)(1000 * (number + 1)));
  woken_s[number] = MPI_Wtime();
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  const long count = atol(argv[1]);
  static pthread_t threads[most_threads];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1 << 16);
  const double began_s = MPI_Wtime();
  for (long i = 0; i < count; ++i) {
    if (pthread_create(&threads[i], &attributes, sleeps, (void*)i) != 0) abort();
  }
  for (long i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  int wrong = 0;
  for (long i = 0; i < count; ++i) {
    const double late_s = woken_s[i] - began_s - 1e-3 * rounds * (i + 1);
    if (late_s < -1e-9 || late_s > 1e-6) ++wrong;
  }
  printf("%d wrong, %.1f ms\n", wrong, (MPI_Wtime() - began_s) * 1e3);
  MPI_Finalize();
  return 0;
}
