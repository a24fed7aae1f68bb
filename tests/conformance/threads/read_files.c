/* A thread reads from a file of its process, which another thread writes while it goes on: what is read comes
   when it was written. Prints for each kind of file by how many us the read is later, at most, and what the
   last read returned, after the end that writes was closed. */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { parts = 20, steps = 30 };

static double written_s[parts];
static double read_s[parts];
static int last;

static void sleep_us(long us) {
  const struct timespec duration = {.tv_nsec = us * 1000};
  nanosleep(&duration, NULL);
}

static void* read_all(void* argument) {
  const int file = *(const int*)argument;
  uint64_t value = 0;
  for (int i = 0; i < parts; ++i) {
    if (read(file, &value, sizeof value) <= 0) return NULL;
    read_s[i] = MPI_Wtime();
  }
  const struct timespec none = {0};
  nanosleep(&none, NULL);
  last = (int)read(file, &value, sizeof value);
  return NULL;
}

/* Another thread waits for what nobody writes: it must cost the others nothing. */
static void* read_nothing(void* argument) {
  char byte = 0;
  return read(*(const int*)argument, &byte, 1) == 0 ? NULL : argument;
}

static void measure(const char* name, int reads, int writes) {
  pthread_t reader;
  pthread_create(&reader, NULL, read_all, &reads);
  for (int i = 0; i < parts; ++i) {
    for (int k = 0; k < steps; ++k) sleep_us(1);
    const uint64_t one = 1;
    written_s[i] = MPI_Wtime();
    if (write(writes, &one, sizeof one) < 0) perror(name);
  }
  for (int k = 0; k < steps; ++k) sleep_us(1);
  if (reads == writes) { /* an eventfd has no end */
    const uint64_t one = 1;
    if (write(writes, &one, sizeof one) < 0) perror(name);
  } else {
    close(writes);
  }
  pthread_join(reader, NULL);
  double latest_s = 0;
  for (int i = 0; i < parts; ++i) {
    const double later_s = read_s[i] - written_s[i];
    if (later_s > latest_s) latest_s = later_s;
  }
  printf("%s: later by %.2f us, at the end %d, now %.3f us\n", name, latest_s * 1e6, last, MPI_Wtime() * 1e6);
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  int idle[2];
  if (pipe(idle) != 0) return 1;
  pthread_t waits;
  pthread_create(&waits, NULL, read_nothing, &idle[0]);
  int ends[2];
  if (pipe(ends) != 0) return 1;
  measure("pipe", ends[0], ends[1]);
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
  measure("socket pair", ends[0], ends[1]);
  const int events = eventfd(0, 0);
  measure("eventfd", events, events);
  close(idle[1]);
  pthread_join(waits, NULL);
  MPI_Finalize();
  return 0;
}
