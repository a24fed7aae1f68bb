// thread_work: what the threads of a rank cost; run and timed by thread_cost.py. It reads no clock.
//
//   thread_work messages THREADS MESSAGES   2 ranks send 8 bytes back and forth; their threads share the
//   messages thread_work beside MESSAGES             one thread does so, beside one that waits at a condition
//   thread_work regions REGIONS STEPS       parallel regions of OpenMP, each of so many steps of a vector
//   update
#include <mpi.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_threads = 16, length = 4096, exit_bad_input = 2 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int rank, is_over;

struct Share {
  int tag;
  long messages;
};

static void* exchange(void* argument) {
  const struct Share share = *(const struct Share*)argument;
  char ball[8] = {0};
  for (long i = 0; i < share.messages / 2; ++i) {
    if (rank == 0) MPI_Send(ball, sizeof ball, MPI_CHAR, 1, share.tag, MPI_COMM_WORLD);
    MPI_Recv(ball, sizeof ball, MPI_CHAR, 1 - rank, share.tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(ball, sizeof ball, MPI_CHAR, 0, share.tag, MPI_COMM_WORLD);
  }
  return NULL;
}

static void* wait_until_over(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  while (!is_over) pthread_cond_wait(&condition, &mutex);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void exchange_in_threads(int count, long messages) {
  struct Share shares[most_threads];
  pthread_t threads[most_threads];
  for (int i = 0; i < count; ++i) shares[i] = (struct Share){i, messages / count};
  for (int i = 1; i < count; ++i) pthread_create(&threads[i], NULL, exchange, &shares[i]);
  exchange(&shares[0]);
  for (int i = 1; i < count; ++i) pthread_join(threads[i], NULL);
}

static void exchange_beside(long messages) {
  pthread_t thread;
  pthread_create(&thread, NULL, wait_until_over, NULL);
  exchange_in_threads(1, messages);
  pthread_mutex_lock(&mutex);
  is_over = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, NULL);
}

static void compute_in_regions(long regions, long steps) {
  static double x[length], y[length];
  for (long region = 0; region < regions; ++region) {
#pragma omp parallel num_threads(2)
    for (long step = 0; step < steps; ++step) {
#pragma omp for simd schedule(static) nowait
      for (int i = 0; i < length; ++i) y[i] = 0.5 * y[i] + x[i] + 1;
    }
  }
  if (y[0] < 0) printf("%g\n", y[0]);
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const long first = argc > 2 ? atol(argv[2]) : -1;
  const long second = argc > 3 ? atol(argv[3]) : -1;
  if (argc == 4 && strcmp(argv[1], "messages") == 0 && first > 0 && first <= most_threads) {
    exchange_in_threads((int)first, second);
  } else if (argc == 3 && strcmp(argv[1], "beside") == 0) {
    exchange_beside(first);
  } else if (argc == 4 && strcmp(argv[1], "regions") == 0) {
    compute_in_regions(first, second);
  } else {
    fprintf(stderr,
            "thread_work: expected messages THREADS MESSAGES, beside MESSAGES or regions REGIONS STEPS\n");
    MPI_Abort(MPI_COMM_WORLD, exit_bad_input);
  }
  MPI_Finalize();
  return 0;
}
