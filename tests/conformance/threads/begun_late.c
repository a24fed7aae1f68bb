// What the first thread has done before it creates another one, or a process, is in order with what follows.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void* exchanges(void* communicator) {
  int rank;
  MPI_Comm_rank(*(MPI_Comm*)communicator, &rank);
  int other = -1;
  MPI_Sendrecv(&rank, 1, MPI_INT, rank ^ 1, 0, &other, 1, MPI_INT, rank ^ 1, 0, *(MPI_Comm*)communicator,
               MPI_STATUS_IGNORE);
  usleep(100);
  return NULL;
}

int main(int count, char** arguments) {
  int provided;
  MPI_Init_thread(&count, &arguments, MPI_THREAD_MULTIPLE, &provided);
  const char* first = arguments[1];
  if (strcmp(first, "clock") == 0) MPI_Wtime();
  if (strcmp(first, "message") == 0) MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(first, "sleep") == 0) usleep(10);
  if (strcmp(arguments[2], "process") == 0) {
    if (system("sleep 0.001") != 0) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Barrier(MPI_COMM_WORLD);
  } else {
    MPI_Comm communicator;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
    pthread_t thread;
    pthread_create(&thread, NULL, exchanges, &communicator);
    MPI_Barrier(MPI_COMM_WORLD);
    pthread_join(thread, NULL);
    MPI_Comm_free(&communicator);
  }
  printf("%.9f\n", MPI_Wtime());
  MPI_Finalize();
}
