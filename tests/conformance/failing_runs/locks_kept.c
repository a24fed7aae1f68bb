// Waits for a lock that a thread has kept, which has ended, or that this thread keeps itself. The others wait
// for this rank.
#define _GNU_SOURCE  // read-write locks
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_rwlock_t read_write = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* read_lock(void* none) {
  pthread_rwlock_rdlock(&read_write);
  return none;
}
static void* write_lock(void* none) {
  pthread_rwlock_wrlock(&read_write);
  return none;
}
static void* lock(void* none) {
  pthread_mutex_lock(&mutex);
  return none;
}

// Reads, and then again while a writer waits, which goes first by the kind of the lock.
static void read_twice(void) {
  pthread_rwlockattr_t attributes;
  pthread_rwlockattr_init(&attributes);
  pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_init(&read_write, &attributes);
  pthread_t writer;
  read_lock(NULL);
  pthread_create(&writer, NULL, write_lock, NULL);
  usleep(1000);
  read_lock(NULL);
}

static void end_with(void* (*keep)(void*)) {
  pthread_t thread;
  pthread_create(&thread, NULL, keep, NULL);
  pthread_join(thread, NULL);
}

int main(int argc, char** argv) {
  const char* const which = argc > 1 ? argv[1] : "";
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0 && strcmp(which, "mutex") == 0) {
    end_with(lock);
    lock(NULL);
  } else if (rank == 0 && strcmp(which, "reader-of-writer") == 0) {
    end_with(write_lock);
    read_lock(NULL);
  } else if (rank == 0 && strcmp(which, "writer-of-writer") == 0) {
    end_with(write_lock);
    write_lock(NULL);
  } else if (rank == 0 && strcmp(which, "writer-of-reader") == 0) {
    end_with(read_lock);
    write_lock(NULL);
  } else if (rank == 0 && strcmp(which, "read-twice") == 0) {
    read_twice();
  } else if (rank == 0 && strcmp(which, "own") == 0) {
    lock(NULL);
    lock(NULL);
  }
  MPI_Finalize();
  puts("done");
  return 0;
}
