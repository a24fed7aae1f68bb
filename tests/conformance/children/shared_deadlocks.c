/* Processes of a rank that wait for each other's locks for ever. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct shared {
  pthread_mutex_t first;
  pthread_mutex_t second;
  sem_t semaphore;
};

static struct shared* memory;

static void sleep_ms(long ms) {
  const struct timespec duration = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
  nanosleep(&duration, NULL);
}

static void take(pthread_mutex_t* one, pthread_mutex_t* other) {
  pthread_mutex_lock(one);
  sleep_ms(10);
  pthread_mutex_lock(other);
}

static pid_t start(void) {
  fflush(stdout);
  return fork();
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&memory->first, &attributes);
  pthread_mutex_init(&memory->second, &attributes);
  sem_init(&memory->semaphore, 1, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  const char* const what = argv[1];
  if (strcmp(what, "circle") == 0) {
    if (start() == 0) take(&memory->second, &memory->first);
    take(&memory->first, &memory->second);
  } else if (strcmp(what, "children") == 0) {
    if (start() == 0) take(&memory->second, &memory->first);
    if (start() == 0) take(&memory->first, &memory->second);
    while (wait(NULL) > 0) {
    }
  } else if (strcmp(what, "semaphore") == 0) {
    if (start() == 0) pthread_mutex_lock(&memory->first), sem_wait(&memory->semaphore);
    sleep_ms(5);
    pthread_mutex_lock(&memory->first);
  } else if (strcmp(what, "ended") == 0) {
    if (start() == 0) {
      pthread_mutex_lock(&memory->first);
      _exit(0);
    }
    wait(NULL);
    pthread_mutex_lock(&memory->first);
  } else if (strcmp(what, "ends") == 0) {
    if (start() == 0) {
      pthread_mutex_lock(&memory->first);
      sleep_ms(20);
      _exit(0);
    }
    sleep_ms(5);
    pthread_mutex_lock(&memory->first);
  }
  MPI_Finalize();
  return 0;
}
