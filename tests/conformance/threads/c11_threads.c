// Threads of threads.h: one initialisation, turns at a condition, limits of waits, and data whose destructors
// sleep.
#include <stdlib.h>
#include <threads.h>
#include <time.h>

#include "../c/check.h"

enum { thread_count = 4, rounds = 5 };

static struct World world;
static mtx_t lock;
static mtx_t held;
static cnd_t changed;
static tss_t key;
static once_flag once = ONCE_FLAG_INIT;
static int turn;
static int initialisations;

static struct timespec milliseconds(int count) {
  return (struct timespec){.tv_sec = 0, .tv_nsec = count * 1000000L};
}

static void initialise(void) {
  const struct timespec pause = milliseconds(1);
  thrd_sleep(&pause, NULL);
  ++initialisations;
}

static void destroy(void* data) {
  const int thread = *(const int*)data;
  const struct timespec pause = milliseconds(10 * (thread_count - thread));
  free(data);
  thrd_sleep(&pause, NULL);
  mtx_lock(&lock);
  printf("rank %d, thread %d: destroyed at %.6f\n", world.rank, thread, MPI_Wtime());
  mtx_unlock(&lock);
}

static int work(void* argument) {
  const int thread = *(const int*)argument;
  call_once(&once, initialise);
  int* const data = malloc(sizeof *data);
  *data = thread;
  tss_set(key, data);
  for (int round = 0; round < rounds; ++round) {
    mtx_lock(&lock);
    while (turn % thread_count != thread) cnd_wait(&changed, &lock);
    int in = 0;
    MPI_Sendrecv(&turn, 1, MPI_INT, (world.rank + 1) % world.size, 0, &in, 1, MPI_INT,
                 (world.rank + world.size - 1) % world.size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(in == turn);
    ++turn;
    cnd_broadcast(&changed);
    mtx_unlock(&lock);
  }
  struct timespec until;
  timespec_get(&until, TIME_UTC);
  until.tv_nsec = 100000000L * (thread + 1);
  CHECK(mtx_timedlock(&held, &until) == thrd_timedout);
  printf("rank %d, thread %d: gave up at %.6f\n", world.rank, thread, MPI_Wtime());
  return thread;
}

int main(int argc, char** argv) {
  world = begin_threaded_program(&argc, &argv);
  CHECK(mtx_init(&lock, mtx_plain) == thrd_success && mtx_init(&held, mtx_timed) == thrd_success);
  CHECK(cnd_init(&changed) == thrd_success && tss_create(&key, destroy) == thrd_success);
  mtx_lock(&held);
  thrd_t threads[thread_count];
  int numbers[thread_count];
  for (int i = 0; i < thread_count; ++i) {
    numbers[i] = i;
    CHECK(thrd_create(&threads[i], work, &numbers[i]) == thrd_success);
  }
  for (int i = 0; i < thread_count; ++i) {
    int result = -1;
    CHECK(thrd_join(threads[i], &result) == thrd_success && result == i);
  }
  CHECK(initialisations == 1 && turn == thread_count * rounds);
  return end_program(world);
}
