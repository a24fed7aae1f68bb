// Thread 0 allocates, so that its library takes locks, before it prints. Thread 1 prints at once.
#include <pthread.h>
#include <stdio.h>

#include "../c/check.h"

void WATCH(int times);

static void* allocate(void* argument) {
  const int thread = *(int*)argument;
  if (thread == 0) WATCH(20);
  printf("thread %d\n", thread);
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  pthread_t threads[2];
  int numbers[2] = {0, 1};
  for (int i = 0; i < 2; ++i) CHECK(pthread_create(&threads[i], NULL, allocate, &numbers[i]) == 0);
  for (int i = 0; i < 2; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  MPI_Finalize();
  return 0;
}
