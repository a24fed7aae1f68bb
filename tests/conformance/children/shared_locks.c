/* The processes of a rank meet at objects in memory that they share: each case prints its name, the virtual
   time that it took in ms, and what it found. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct shared {
  pthread_mutex_t mutex;
  pthread_mutex_t robust;
  pthread_cond_t condition;
  pthread_rwlock_t rwlock;
  pthread_barrier_t barrier;
  pthread_spinlock_t spin;
  sem_t semaphore;
  uint32_t word;
  int count;
  int order[8];
};

static struct shared* memory;
static sem_t* named;
static double began_s;

static void end_all(void) {
  while (waitpid(-1, NULL, 0) > 0) {
  }
}

static void show(const char* name, int found) {
  end_all();
  printf("%s: %.1f ms, %d\n", name, (MPI_Wtime() - began_s) * 1e3, found);
  fflush(stdout);
  memory->count = 0;
  began_s = MPI_Wtime();
}

static void sleep_ms(long ms) {
  const struct timespec duration = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
  nanosleep(&duration, NULL);
}

static struct timespec in_ms(long ms) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  now.tv_nsec += ms * 1000000;
  now.tv_sec += now.tv_nsec / 1000000000;
  now.tv_nsec %= 1000000000;
  return now;
}

static void start(int number, void (*work)(int)) {
  if (fork() != 0) return;
  work(number);
  _exit(0);
}

/* Appends the digit. */
static void note(int digit) {
  memory->count = 10 * memory->count + digit;
}

static void takes_mutex(int number) {
  sleep_ms(number);
  pthread_mutex_lock(&memory->mutex);
  sleep_ms(20);
  note(number);
  pthread_mutex_unlock(&memory->mutex);
}

static void awaits_condition(int number) {
  sleep_ms(number);
  pthread_mutex_lock(&memory->mutex);
  while (memory->word == 0) pthread_cond_wait(&memory->condition, &memory->mutex);
  note(number);
  pthread_mutex_unlock(&memory->mutex);
}

static void reads(int number) {
  sleep_ms(number);
  pthread_rwlock_rdlock(&memory->rwlock);
  sleep_ms(10);
  pthread_rwlock_unlock(&memory->rwlock);
}

static void comes(int number) {
  for (int i = 0; i < 3; ++i) {
    sleep_ms(10 * number);
    if (pthread_barrier_wait(&memory->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) note(number);
  }
}

static void spins(int number) {
  sleep_ms(number);
  pthread_spin_lock(&memory->spin);
  sleep_ms(5);
  note(number);
  pthread_spin_unlock(&memory->spin);
}

static void posts(int number) {
  sleep_ms(30 * number);
  sem_post(&memory->semaphore);
}

static void posts_named(int number) {
  sleep_ms(10 * number);
  sem_post(named);
}

static void sets_word(int number) {
  sleep_ms(40 * number);
  memory->word = 1;
  syscall(SYS_futex, &memory->word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void dies_with_lock(int number) {
  pthread_mutex_lock(&memory->robust);
  sleep_ms(25 * number);
  if (number == 2) raise(SIGKILL);
}

static void make_objects(void) {
  pthread_mutexattr_t mutex;
  pthread_mutexattr_init(&mutex);
  pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&memory->mutex, &mutex);
  pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&memory->robust, &mutex);
  pthread_condattr_t condition;
  pthread_condattr_init(&condition);
  pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
  pthread_cond_init(&memory->condition, &condition);
  pthread_rwlockattr_t rwlock;
  pthread_rwlockattr_init(&rwlock);
  pthread_rwlockattr_setpshared(&rwlock, PTHREAD_PROCESS_SHARED);
  pthread_rwlock_init(&memory->rwlock, &rwlock);
  pthread_barrierattr_t barrier;
  pthread_barrierattr_init(&barrier);
  pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&memory->barrier, &barrier, 3);
  pthread_spin_init(&memory->spin, PTHREAD_PROCESS_SHARED);
  sem_init(&memory->semaphore, 1, 0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  make_objects();
  MPI_Barrier(MPI_COMM_WORLD);
  began_s = MPI_Wtime();

  for (int i = 1; i <= 4; ++i) start(i, takes_mutex);
  end_all();
  show("mutex", memory->count);
  pthread_mutex_lock(&memory->mutex);
  for (int i = 1; i <= 3; ++i) start(4 - i, takes_mutex);
  sleep_ms(50);
  pthread_mutex_unlock(&memory->mutex);
  end_all();
  show("mutex of the rank", memory->count);

  for (int i = 1; i <= 3; ++i) start(i, awaits_condition);
  sleep_ms(30);
  pthread_mutex_lock(&memory->mutex);
  memory->word = 1;
  pthread_cond_broadcast(&memory->condition);
  pthread_mutex_unlock(&memory->mutex);
  end_all();
  show("condition", memory->count);
  struct timespec limit = in_ms(15);
  pthread_mutex_lock(&memory->mutex);
  const int waited = pthread_cond_timedwait(&memory->condition, &memory->mutex, &limit);
  pthread_mutex_unlock(&memory->mutex);
  show("limit of a condition", waited == ETIMEDOUT);

  for (int i = 1; i <= 3; ++i) start(i, reads);
  sleep_ms(2);
  pthread_rwlock_wrlock(&memory->rwlock);
  sleep_ms(7);
  pthread_rwlock_unlock(&memory->rwlock);
  show("readers and a writer", 0);

  for (int i = 1; i <= 2; ++i) start(i, comes);
  comes(3);
  show("barrier", memory->count);

  for (int i = 1; i <= 3; ++i) start(i, spins);
  end_all();
  show("spin lock", memory->count);

  start(1, posts);
  start(2, posts);
  sem_wait(&memory->semaphore);
  sem_wait(&memory->semaphore);
  show("semaphore", sem_trywait(&memory->semaphore) == -1 && errno == EAGAIN);
  start(2, posts);
  limit = in_ms(25);
  const int timed = sem_timedwait(&memory->semaphore, &limit);
  show("limit of a semaphore", timed == -1 && errno == ETIMEDOUT);
  sem_wait(&memory->semaphore);

  char name[64];
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(name, sizeof name, "/apenet-test-%d-%d", (int)getpid(), rank);
  named = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
  start(3, posts_named);
  sem_wait(named);
  sem_unlink(name);
  show("named semaphore", 0);
  start(4, posts_named);
  sem_wait(named);
  show("semaphore without a name", 0);

  memory->word = 0;
  start(1, sets_word);
  long futex = 0;
  while (memory->word == 0) futex = syscall(SYS_futex, &memory->word, FUTEX_WAIT, 0, NULL, NULL, 0);
  show("futex", (int)futex);

  start(1, dies_with_lock);
  sleep_ms(5);
  int error = pthread_mutex_lock(&memory->robust);
  show("its owner ends", error == EOWNERDEAD && pthread_mutex_consistent(&memory->robust) == 0);
  pthread_mutex_unlock(&memory->robust);
  start(2, dies_with_lock);
  sleep_ms(5);
  error = pthread_mutex_lock(&memory->robust);
  show("its owner is killed", error == EOWNERDEAD && pthread_mutex_consistent(&memory->robust) == 0);
  pthread_mutex_unlock(&memory->robust);
  MPI_Finalize();
  return 0;
}
