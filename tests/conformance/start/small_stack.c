// Uses KIB of its stack, once it has lowered the limit of the stack to LIMIT_KIB if there is one, and prints
// where the stack of main() lies. Arguments: KIB [LIMIT_KIB [thread]]; thread: another thread lowers it.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static void* lower_limit(void* kib) {
  struct rlimit limit;
  getrlimit(RLIMIT_STACK, &limit);
  limit.rlim_cur = strtoul(kib, NULL, 10) * 1024;
  if (setrlimit(RLIMIT_STACK, &limit) != 0) abort();
  return NULL;
}

static int use_kib(int kib) {
  volatile char used[1024];
  used[0] = 0;
  used[1023] = 0;
  return kib == 0 ? 0 : 1 + use_kib(kib - 1) + used[0] + used[1023];
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc == 3) lower_limit(argv[2]);
  if (argc == 4) {
    pthread_t thread;
    pthread_create(&thread, NULL, lower_limit, argv[2]);
    pthread_join(thread, NULL);
  }
  printf("%d KiB below %p\n", use_kib(atoi(argv[1])), (void*)&argc);
  MPI_Finalize();
  return 0;
}
