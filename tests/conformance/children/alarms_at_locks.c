// An alarm rings while a process with one thread waits for a lock, a barrier or a condition that it shares
// with its child: the handler runs at its time, and the wait goes on. Only the handler lets the child go on.
// Prints when the handler ran and when the wait ended, in ms.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct Shared {
  pthread_barrier_t barrier;
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  pthread_rwlock_t lock;
  pthread_spinlock_t spin;
  sem_t semaphore;
  int is_open;
} * shared;
static const char* object;
static pid_t child;
static volatile long rang_ms;

static long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (long)(now.tv_sec % 1000 * 1000 + now.tv_nsec / 1000000);
}

static void on_alarm(int number) {
  (void)number;
  rang_ms = now_ms();
  kill(child, SIGUSR1);
}

static void on_user(int number) {
  (void)number;
}

static int is(const char* name) {
  return strcmp(object, name) == 0;
}

static void make(void) {
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_barrierattr_t barrier;
  pthread_mutexattr_t mutex;
  pthread_condattr_t condition;
  pthread_rwlockattr_t lock;
  pthread_barrierattr_init(&barrier);
  pthread_mutexattr_init(&mutex);
  pthread_condattr_init(&condition);
  pthread_rwlockattr_init(&lock);
  pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
  pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
  pthread_rwlockattr_setpshared(&lock, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &barrier, 2);
  pthread_mutex_init(&shared->mutex, &mutex);
  pthread_cond_init(&shared->condition, &condition);
  pthread_rwlock_init(&shared->lock, &lock);
  pthread_spin_init(&shared->spin, PTHREAD_PROCESS_SHARED);
  sem_init(&shared->semaphore, 1, 0);
}

// What the child does before the parent waits, and after the alarm.
static void hold(void) {
  if (is("mutex")) pthread_mutex_lock(&shared->mutex);
  if (is("read") || is("write")) pthread_rwlock_wrlock(&shared->lock);
  if (is("spin")) pthread_spin_lock(&shared->spin);
}

static void give(void) {
  if (is("mutex")) pthread_mutex_unlock(&shared->mutex);
  if (is("read") || is("write")) pthread_rwlock_unlock(&shared->lock);
  if (is("spin")) pthread_spin_unlock(&shared->spin);
  if (is("barrier")) pthread_barrier_wait(&shared->barrier);
  if (is("semaphore")) sem_post(&shared->semaphore);
  if (is("condition")) {
    pthread_mutex_lock(&shared->mutex);
    shared->is_open = 1;
    pthread_cond_signal(&shared->condition);
    pthread_mutex_unlock(&shared->mutex);
  }
  if (is("futex")) {
    shared->is_open = 1;
    syscall(SYS_futex, &shared->is_open, FUTEX_WAKE, 1);
  }
}

static void take(void) {
  if (is("mutex")) pthread_mutex_lock(&shared->mutex);
  if (is("read")) pthread_rwlock_rdlock(&shared->lock);
  if (is("write")) pthread_rwlock_wrlock(&shared->lock);
  if (is("spin")) pthread_spin_lock(&shared->spin);
  if (is("barrier")) pthread_barrier_wait(&shared->barrier);
  while (is("semaphore") && sem_wait(&shared->semaphore) != 0) continue;
  if (is("condition")) {
    pthread_mutex_lock(&shared->mutex);
    while (!shared->is_open) pthread_cond_wait(&shared->condition, &shared->mutex);
    pthread_mutex_unlock(&shared->mutex);
  }
  while (is("futex") && !shared->is_open) syscall(SYS_futex, &shared->is_open, FUTEX_WAIT, 0, NULL);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  object = argv[1];
  make();
  struct sigaction alarms = {.sa_handler = on_alarm};
  struct sigaction users = {.sa_handler = on_user};
  sigset_t user;
  sigset_t before;
  sigemptyset(&user);
  sigaddset(&user, SIGUSR1);
  sigaction(SIGALRM, &alarms, NULL);
  sigaction(SIGUSR1, &users, NULL);
  sigprocmask(SIG_BLOCK, &user, &before);
  int files[2];
  char byte = 0;
  if (pipe(files) != 0) return 1;
  child = fork();
  if (child == 0) {
    hold();
    if (write(files[1], &byte, 1) != 1) _exit(1);
    sigsuspend(&before);
    usleep(500000);
    give();
    _exit(0);
  }
  if (read(files[0], &byte, 1) != 1) return 1;
  const long began_ms = now_ms();
  alarm(1);
  take();
  printf("%ld %ld\n", rang_ms - began_ms, now_ms() - began_ms);
  waitpid(child, NULL, 0);
  MPI_Finalize();
  return 0;
}
