// Probes of messages that a process sends to itself: own_probes WAY. "alone" and "matched" find none;
// "thread" waits in both calls for messages of another thread, 1 ms apart.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void* send_both(void* unused) {
  const struct timespec pause = {.tv_nsec = 1000000};
  for (int i = 0; i < 2; ++i) {
    nanosleep(&pause, NULL);
    MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_SELF);
  }
  return unused;
}

int main(int count, char** arguments) {
  int provided;
  MPI_Init_thread(&count, &arguments, MPI_THREAD_MULTIPLE, &provided);
  const char* way = arguments[1];
  MPI_Status status;
  MPI_Message message;
  pthread_t sender;
  int values[2] = {-1, -1};
  const double begin_s = MPI_Wtime();
  if (strcmp(way, "thread") == 0) pthread_create(&sender, NULL, send_both, NULL);
  if (strcmp(way, "matched") != 0) {
    MPI_Probe(0, 0, MPI_COMM_SELF, &status);
    MPI_Recv(&values[0], 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  }
  MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &message, &status);
  MPI_Mrecv(&values[1], 1, MPI_INT, &message, MPI_STATUS_IGNORE);
  pthread_join(sender, NULL);
  printf("%d %d after %.0f ms\n", values[0], values[1], (MPI_Wtime() - begin_s) * 1e3);
  MPI_Finalize();
}
