// Threads that wait side by side for a duration take no longer than one of them, also while another thread of
// their rank is in MPI.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../c/check.h"

enum { threads = 4, short_ns = 20000000, long_ns = 100000000 };

static void wait_for_nothing(long ns) {
  const struct timespec duration = {0, ns};
  unsigned word = 7;
  CHECK(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 7, &duration, NULL, 0) == -1);
}

static void* wait_shortly(void* nothing) {
  wait_for_nothing(short_ns);
  return nothing;
}

int main(int argc, char** argv) {
  pthread_t others[threads];
  struct World world;
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  const double began = MPI_Wtime();
  if (world.rank == 0) {
    for (int i = 0; i < threads; ++i) CHECK(pthread_create(&others[i], NULL, wait_shortly, NULL) == 0);
  } else {
    wait_for_nothing(long_ns);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (world.rank == 0) {
    for (int i = 0; i < threads; ++i) pthread_join(others[i], NULL);
  }
  const double passed = MPI_Wtime() - began;
  CHECK(passed >= 1e-9 * long_ns && passed < 1e-9 * (long_ns + 2 * short_ns));
  return end_program(world);
}
