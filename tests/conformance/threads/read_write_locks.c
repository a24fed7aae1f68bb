// The kind of a read-write lock decides who goes first: readers, or a writer that waits. The times
// follow by hand, as the C library orders them.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../c/check.h"

static pthread_rwlock_t* lock;
static volatile int has_written;

static void sleep_ms(long ms) {
  const struct timespec time = {0, ms * 1000000};
  CHECK(nanosleep(&time, NULL) == 0);
}

static struct timespec after_ms(long ms) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  const long ns = time.tv_nsec + ms * 1000000;
  return (struct timespec){time.tv_sec + ns / 1000000000, ns % 1000000000};
}

static double began;

static long since_begin_ms(void) {
  return (long)((MPI_Wtime() - began) * 1e3 + 0.5);
}

// Two readers, of which always one has the lock: from 0, 10, 20 ... and from 5, 15, 25 ... ms on.
static void* read_often(void* argument) {
  sleep_ms(*(int*)argument);
  for (int i = 0; i < 20 && !has_written; ++i) {
    CHECK(pthread_rwlock_rdlock(lock) == 0);
    sleep_ms(10);
    CHECK(pthread_rwlock_unlock(lock) == 0);
  }
  return NULL;
}

static void* write_once(void* argument) {
  sleep_ms(*(int*)argument);
  CHECK(pthread_rwlock_wrlock(lock) == 0);
  has_written = 1;
  printf("writes at %ld ms\n", since_begin_ms());
  CHECK(pthread_rwlock_unlock(lock) == 0);
  return NULL;
}

static void overlap(void) {
  static int delays_ms[] = {0, 5, 12};
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i)
    CHECK(pthread_create(&threads[i], NULL, i < 2 ? read_often : write_once, &delays_ms[i]) == 0);
  for (int i = 0; i < 3; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

static const char* name_of(int error) {
  return error == 0 ? "gets it" : error == EBUSY ? "EBUSY" : error == ETIMEDOUT ? "ETIMEDOUT" : "error";
}

// A writer waits from 5 ms on while this thread reads, and it asks again at 10 ms.
static void read_twice(void) {
  static int delay_ms = 5;
  pthread_t writer;
  CHECK(pthread_create(&writer, NULL, write_once, &delay_ms) == 0);
  CHECK(pthread_rwlock_rdlock(lock) == 0);
  sleep_ms(10);
  const int tried = pthread_rwlock_tryrdlock(lock);
  const struct timespec limit = after_ms(20);
  const int waited = pthread_rwlock_timedrdlock(lock, &limit);
  printf("at once %s, with a limit %s at %ld ms\n", name_of(tried), name_of(waited), since_begin_ms());
  for (int i = 0; i < 1 + (tried == 0) + (waited == 0); ++i) CHECK(pthread_rwlock_unlock(lock) == 0);
  CHECK(pthread_join(writer, NULL) == 0);
}

static void* give_up_writing(void* none) {
  const struct timespec limit = after_ms(30);
  CHECK(pthread_rwlock_timedwrlock(lock, &limit) == ETIMEDOUT);
  return none;
}

static void* read_once(void* none) {
  sleep_ms(10);
  CHECK(pthread_rwlock_rdlock(lock) == 0);
  printf("reads at %ld ms\n", since_begin_ms());
  CHECK(pthread_rwlock_unlock(lock) == 0);
  return none;
}

// A writer waits from 0 to 30 ms, and another thread wants to read from 10 ms on.
static void give_up(void) {
  pthread_t writer, reader;
  CHECK(pthread_rwlock_rdlock(lock) == 0);
  CHECK(pthread_create(&writer, NULL, give_up_writing, NULL) == 0);
  CHECK(pthread_create(&reader, NULL, read_once, NULL) == 0);
  sleep_ms(50);
  CHECK(pthread_rwlock_unlock(lock) == 0);
  CHECK(pthread_join(writer, NULL) == 0);
  CHECK(pthread_join(reader, NULL) == 0);
}

int main(int argc, char** argv) {
  const struct World world = begin_threaded_program(&argc, &argv);
  CHECK(argc == 3);
  pthread_rwlockattr_t attributes;
  CHECK(pthread_rwlockattr_init(&attributes) == 0);
  CHECK(pthread_rwlockattr_setkind_np(&attributes, atoi(argv[1])) == 0);
  lock = malloc(sizeof *lock);
  CHECK(pthread_rwlock_init(lock, &attributes) == 0);
  began = MPI_Wtime();
  if (strcmp(argv[2], "overlap") == 0) overlap();
  if (strcmp(argv[2], "read-twice") == 0) read_twice();
  if (strcmp(argv[2], "give-up") == 0) give_up();
  CHECK(pthread_rwlock_destroy(lock) == 0);
  free(lock);
  return end_program(world);
}
