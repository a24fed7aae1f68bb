// Polls a request again and again, without a clock read or a yield, until another thread ("thread") or the
// handler of an alarm ("alarm") completes it. Prints whether virtual time has come so far, and no further.
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { length_us = 200000 };

static MPI_Request request;
static volatile sig_atomic_t rings;

static int query(void* state, MPI_Status* status) {
  (void)state;
  MPI_Status_set_cancelled(status, 0);
  return MPI_Status_set_elements(status, MPI_BYTE, 0);
}

static int release(void* state) {
  (void)state;
  return MPI_SUCCESS;
}

static int cancel(void* state, int complete) {
  (void)state;
  (void)complete;
  return MPI_SUCCESS;
}

static void* work(void* argument) {
  usleep(length_us);
  MPI_Grequest_complete(request);
  return argument;
}

static void ring(int signal) {
  (void)signal;
  rings = 1;
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Request polled;
  MPI_Grequest_start(query, release, cancel, NULL, &polled);
  request = polled;
  const double began_s = MPI_Wtime();
  pthread_t thread;
  const int has_thread = strcmp(argv[1], "thread") == 0;
  if (has_thread) {
    pthread_create(&thread, NULL, work, NULL);
  } else {
    signal(SIGALRM, ring);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {.tv_usec = length_us}}, NULL);
  }
  for (int done = 0; !done;) {
    MPI_Test(&polled, &done, MPI_STATUS_IGNORE);
    if (rings && !done) MPI_Grequest_complete(request);
  }
  if (has_thread) pthread_join(thread, NULL);
  const double took_us = 1e6 * (MPI_Wtime() - began_s);
  puts(took_us >= length_us && took_us < length_us + 10 ? "in time" : "too late");
  MPI_Finalize();
}
