// Threads of a rank that sleep or wait for a limited time beside one in MPI. The argument names the case.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../c/check.h"

static struct World world;
static int beats, is_over, in_queue;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;

static struct timespec after_ms(long ms) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  const long ns = time.tv_nsec + ms % 1000 * 1000000;
  return (struct timespec){time.tv_sec + ms / 1000 + ns / 1000000000, ns % 1000000000};
}

static void sleep_ms(long ms) {
  const struct timespec duration = {ms / 1000, ms % 1000 * 1000000};
  CHECK(nanosleep(&duration, NULL) == 0);
}

static void wait_at_condition(void) {
  pthread_mutex_lock(&mutex);
  const struct timespec limit = after_ms(2000);
  while (pthread_cond_timedwait(&condition, &mutex, &limit) != ETIMEDOUT) continue;
  pthread_mutex_unlock(&mutex);
}

static void wait_at_semaphore(void) {
  const struct timespec limit = after_ms(2000);
  while (sem_timedwait(&semaphore, &limit) == 0 || errno != ETIMEDOUT) continue;
}

static void wait_in_sleep(void) {
  sleep_ms(2000);
}

static void wait_in_poll(void) {
  CHECK(poll(NULL, 0, 2000) == 0);
}

static const struct {
  const char* name;
  void (*wait)(void);
} waits[] = {{"sleep", wait_in_sleep},
             {"poll", wait_in_poll},
             {"condition", wait_at_condition},
             {"semaphore", wait_at_semaphore}};

static void* beat(void* wait) {
  for (;;) {
    (*(void (**)(void))wait)();
    printf("rank %d: beat %d at %.9f\n", world.rank, ++beats, MPI_Wtime());
    fflush(stdout);
  }
  return NULL;
}

// One thread beats every two seconds, while the other waits for a message, or sleeps.
static void count_beats(void (*wait)(void)) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, beat, &wait) == 0);
  if (world.rank != 0) {
    sleep_ms(7100);
    MPI_Send(&beats, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
  }
  for (int from = 1; world.rank == 0 && from < world.size; ++from) {
    int count = 0;
    MPI_Recv(&count, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(count == 3 && beats == 3);
  }
  printf("rank %d: %d beats at %.9f\n", world.rank, beats, MPI_Wtime());
}

// Ranks pass a token around, and look for it.
static void pass_token(int has_thread) {
  pthread_t thread;
  void (*wait)(void) = wait_in_poll;
  if (has_thread) CHECK(pthread_create(&thread, NULL, beat, &wait) == 0);
  int token = 0;
  const int next = (world.rank + 1) % world.size;
  if (world.rank == 0) MPI_Send(&token, 1, MPI_INT, next, 7, MPI_COMM_WORLD);
  for (int turn = 0; turn < 10; ++turn) {
    MPI_Status status;
    for (int is_there = 0; !is_there;)
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, &status);
    MPI_Recv(&token, 1, MPI_INT, status.MPI_SOURCE, 7, MPI_COMM_WORLD, &status);
    if (world.rank != 0 || turn < 9) MPI_Send(&token, 1, MPI_INT, next, 7, MPI_COMM_WORLD);
  }
  printf("rank %d: %.9f\n", world.rank, MPI_Wtime());
}

static void* send_later(void* nothing) {
  sleep_ms(1000);
  for (int to = 1; to < world.size; ++to) MPI_Send(&to, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
  return nothing;
}

// All ranks wait for what a sleeping thread will send.
static void wait_for_sleeper(void) {
  int word = 0;
  pthread_t thread;
  if (world.rank == 0) CHECK(pthread_create(&thread, NULL, send_later, NULL) == 0);
  if (world.rank != 0) MPI_Recv(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(MPI_Wtime() >= 1 && MPI_Wtime() < 1.0001);
  if (world.rank == 0) pthread_join(thread, NULL);
}

static void* sleep_once(void* nothing) {
  sleep_ms(3000);
  return nothing;
}

static void join_sleeper(void) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, sleep_once, NULL) == 0);
  pthread_join(thread, NULL);
  printf("rank %d: %.9f\n", world.rank, MPI_Wtime());
}

static void* produce(void* nothing) {
  for (int i = 0; i <= 10; ++i) {
    sleep_ms(500);
    pthread_mutex_lock(&mutex);
    if (i < 10) ++in_queue;
    is_over = i == 10;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
  }
  return nothing;
}

// The consumer's waits reach their limits twice between two pieces.
static void consume(void) {
  int taken = 0, limits = 0;
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, produce, NULL) == 0);
  pthread_mutex_lock(&mutex);
  while (!is_over || in_queue > 0) {
    const struct timespec limit = after_ms(200);
    if (in_queue == 0 && pthread_cond_timedwait(&condition, &mutex, &limit) == ETIMEDOUT) ++limits;
    if (in_queue > 0) --in_queue, ++taken;
  }
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, NULL);
  printf("rank %d: took %d, %d limits, at %.3f\n", world.rank, taken, limits, MPI_Wtime());
}

// The rank waits for itself for ever, while another thread sleeps again and again.
static void deadlock(void) {
  int word = 0;
  pthread_t thread;
  void (*wait)(void) = wait_in_sleep;
  CHECK(pthread_create(&thread, NULL, beat, &wait) == 0);
  MPI_Recv(&word, 1, MPI_INT, world.rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void* sleep_for_ever(void* unused) {
  (void)unused;
  for (;;) sleep_ms(1000000);
  return NULL;
}

static void* sleep_a_second(void* unused) {
  (void)unused;
  sleep_ms(1000);
  return NULL;
}

// One thread is the first of those that sleep, the other is not.
static void cancel(void) {
  for (int i = 0; i < 4; ++i) {
    pthread_t thread, other;
    CHECK(pthread_create(&other, NULL, sleep_a_second, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, sleep_for_ever, NULL) == 0);
    sleep_ms(100);
    CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(pthread_cancel(other) == 0 && pthread_join(other, NULL) == 0);
  }
  printf("rank %d: at %.3f\n", world.rank, MPI_Wtime());
}

static sigjmp_buf before_sleep;
static pthread_t main_thread;

static void leave_sleep(int signal) {
  (void)signal;
  siglongjmp(before_sleep, 1);
}

static void* interrupt(void* unused) {
  (void)unused;
  sleep_ms(100);
  CHECK(pthread_kill(main_thread, SIGUSR1) == 0);
  return NULL;
}

static void jump(void) {
  pthread_t thread;
  main_thread = pthread_self();
  signal(SIGUSR1, leave_sleep);
  if (sigsetjmp(before_sleep, 1) == 0) {
    CHECK(pthread_create(&thread, NULL, interrupt, NULL) == 0 && pthread_detach(thread) == 0);
    sleep_ms(500);
  }
  CHECK(pthread_create(&thread, NULL, sleep_a_second, NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  printf("rank %d: at %.3f\n", world.rank, MPI_Wtime());
}

static void* exit_later(void* unused) {
  sleep_a_second(unused);
  exit(0);
}

static void leave(void) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, exit_later, NULL) == 0);
  MPI_Finalize();
  pthread_exit(NULL);
}

int main(int argc, char** argv) {
  int provided = 0;
  CHECK(argc == 2);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  CHECK(provided == MPI_THREAD_MULTIPLE && sem_init(&semaphore, 0, 0) == 0);
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  const char* const name = argv[1];
  for (int i = 0; i < (int)(sizeof waits / sizeof *waits); ++i)
    if (strcmp(name, waits[i].name) == 0) count_beats(waits[i].wait);
  if (strncmp(name, "token", 5) == 0) pass_token(strcmp(name, "token beside") == 0);
  if (strcmp(name, "send") == 0) wait_for_sleeper();
  if (strcmp(name, "join") == 0) join_sleeper();
  if (strcmp(name, "consume") == 0) consume();
  if (strcmp(name, "deadlock") == 0) deadlock();
  if (strcmp(name, "cancel") == 0) cancel();
  if (strcmp(name, "jump") == 0) jump();
  if (strcmp(name, "leave") == 0) leave();
  return end_program(world);
}
