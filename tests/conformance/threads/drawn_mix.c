// Threads of each rank do what a seed draws: messages, probes, collectives, locks, conditions, sleeps,
// computation.
//
//   drawn_mix SEED THREADS ROUNDS
//
// Thread t of each rank draws the same kinds, sizes and partners. Each thread prints when it ends, in virtual
// time.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { most_threads = 8, most_bytes = 1 << 14, exit_bad_input = 2 };

enum Kind {
  send_and_receive,
  exchange,
  probe,
  probe_again,
  test_again,
  reduce,
  signal_others,
  nap,
  meet,
  wait_for_a_while,
  compute,
  kinds
};

static int rank, size, threads, rounds;
static unsigned long seed;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static long signals, sum;
static MPI_Comm communicators[most_threads];

static unsigned long draw(unsigned long* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state * 2685821657736338717UL >> 16;
}

struct Partners {
  int to, from, bytes, tag;
};

static void send_message(enum Kind kind, struct Partners with, char* out, char* in) {
  MPI_Request requests[2];
  MPI_Status status;
  int flag = 0;
  if (kind == send_and_receive) {
    MPI_Sendrecv(out, with.bytes, MPI_CHAR, with.to, with.tag, in, with.bytes, MPI_CHAR, with.from, with.tag,
                 MPI_COMM_WORLD, &status);
    return;
  }
  if (kind == exchange || kind == test_again) {
    MPI_Irecv(in, with.bytes, MPI_CHAR, with.from, with.tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, with.bytes, MPI_CHAR, with.to, with.tag, MPI_COMM_WORLD, &requests[1]);
    if (kind == exchange) MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    while (kind == test_again && !flag) MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
    return;
  }
  MPI_Isend(out, with.bytes, MPI_CHAR, with.to, with.tag, MPI_COMM_WORLD, &requests[0]);
  if (kind == probe) MPI_Probe(with.from, with.tag, MPI_COMM_WORLD, &status);
  while (kind == probe_again && !flag) MPI_Iprobe(with.from, with.tag, MPI_COMM_WORLD, &flag, &status);
  MPI_Recv(in, with.bytes, MPI_CHAR, with.from, with.tag, MPI_COMM_WORLD, &status);
  MPI_Wait(&requests[0], &status);
}

static void meet_in_process(enum Kind kind) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 5000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    ++until.tv_sec;
  }
  pthread_mutex_lock(&mutex);
  if (kind == signal_others) {
    ++signals;
    pthread_cond_broadcast(&condition);
  } else {
    pthread_cond_timedwait(&condition, &mutex, &until);
  }
  pthread_mutex_unlock(&mutex);
}

static void add_ranks(int thread) {
  const long one = 1 + thread;
  long all = 0;
  MPI_Allreduce(&one, &all, 1, MPI_LONG, MPI_SUM, communicators[thread]);
  pthread_mutex_lock(&mutex);
  sum += all;
  pthread_mutex_unlock(&mutex);
}

static void use_processor(long steps) {
  volatile double value = 0;
  for (long step = 0; step < steps; ++step) value += (double)step * 1e-9;
}

static void* run_thread(void* argument) {
  const int thread = *(const int*)argument;
  unsigned long common = seed * 7919 + 13 + (unsigned long)thread * 104729;
  unsigned long own = seed + 31 * (unsigned long)rank + 977 * (unsigned long)thread + 1;
  char out[most_bytes], in[most_bytes];
  memset(out, thread, sizeof out);
  for (int i = 0; i < 4; ++i) draw(&common);
  for (int round = 0; round < rounds; ++round) {
    const enum Kind kind = (enum Kind)(draw(&common) % kinds);
    const int bytes = 1 << draw(&common) % 15;
    const int shift = 1 + (int)(draw(&common) % (unsigned long)(size > 1 ? size - 1 : 1));
    const struct Partners with = {(rank + shift) % size, (rank + size - shift) % size, bytes,
                                  thread * 1000 + round};
    const struct timespec a_while = {0, 1000 * (long)(1 + draw(&own) % 20)};
    if (kind <= test_again) send_message(kind, with, out, in);
    if (kind == reduce) add_ranks(thread);
    if (kind == signal_others || kind == wait_for_a_while) meet_in_process(kind);
    if (kind == nap) nanosleep(&a_while, NULL);
    if (kind == meet) MPI_Barrier(communicators[thread]);
    if (kind == compute) use_processor(2000 + (long)(draw(&own) % 60000));
  }
  printf("rank %d thread %d ends at %.3f us\n", rank, thread, MPI_Wtime() * 1e6);
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  seed = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;
  threads = argc > 2 ? atoi(argv[2]) : 0;
  rounds = argc > 3 ? atoi(argv[3]) : 0;
  if (seed == 0 || threads < 1 || threads > most_threads || provided != MPI_THREAD_MULTIPLE) {
    fprintf(stderr, "drawn_mix: expected SEED THREADS ROUNDS, and MPI_THREAD_MULTIPLE\n");
    MPI_Abort(MPI_COMM_WORLD, exit_bad_input);
  }
  pthread_t others[most_threads];
  int numbers[most_threads];
  for (int thread = 0; thread < threads; ++thread) {
    numbers[thread] = thread;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicators[thread]);
  }
  for (int thread = 1; thread < threads; ++thread)
    pthread_create(&others[thread], NULL, run_thread, &numbers[thread]);
  run_thread(&numbers[0]);
  for (int thread = 1; thread < threads; ++thread) pthread_join(others[thread], NULL);
  for (int thread = 0; thread < threads; ++thread) MPI_Comm_free(&communicators[thread]);
  if (rank == 0) printf("%ld signals, sum %ld, at %.3f us\n", signals, sum, MPI_Wtime() * 1e6);
  MPI_Finalize();
  return 0;
}
