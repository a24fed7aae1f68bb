// A thread gives its lock free in a wait with a limit, while another thread waits for the lock and then ends
// the wait: before MPI_Init, as in the event loops of launchers (Tcl's notifier), and for objects that
// processes may share.
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int is_there;

static void* give(void* unused) {
  pthread_mutex_lock(&lock);
  is_there = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&lock);
  return unused;
}

// The lock is held until the other thread waits for it.
static int take(const char* how) {
  pthread_t giver;
  struct timespec limit;
  int error = 0;
  pthread_mutex_lock(&lock);
  is_there = 0;
  pthread_create(&giver, NULL, give, NULL);
  usleep(200000);
  clock_gettime(strcmp(how, "clock") == 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME, &limit);
  limit.tv_sec += 20;
  while (!is_there && error == 0) {
    if (strcmp(how, "clock") == 0) {
      error = pthread_cond_clockwait(&condition, &lock, CLOCK_MONOTONIC, &limit);
    } else if (strcmp(how, "c11") == 0) {
      error = cnd_timedwait((cnd_t*)&condition, (mtx_t*)&lock, &limit) == thrd_success ? 0 : 1;
    } else if (strcmp(how, "unlimited") == 0) {
      error = pthread_cond_wait(&condition, &lock);
    } else {
      error = pthread_cond_timedwait(&condition, &lock, &limit);
    }
  }
  pthread_mutex_unlock(&lock);
  pthread_join(giver, NULL);
  return error;
}

int main(int argc, char** argv) {
  int rank;
  if (strncmp(argv[1], "shared-", 7) == 0) {
    pthread_condattr_t shared;
    pthread_condattr_init(&shared);
    pthread_condattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&condition, &shared);
    argv[1] += 7;
  }
  const int before = take(argv[1]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int after = take(argv[1]);
  printf("%d: %d %d\n", rank, before, after);
  MPI_Finalize();
  return 0;
}
