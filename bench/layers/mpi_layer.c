// Any MPI library.
#include <mpi.h>

typedef MPI_Request Request;
#include "two_sided.h"

void layer_open(void) {
  MPI_Init(NULL, NULL);
}

static void close_library(void) {
  MPI_Finalize();
}

int layer_rank(void) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

double layer_time_us(void) {
  return MPI_Wtime() * 1e6;
}

static void begin_send(const void* data, long bytes, int rank, int tag, Request* request) {
  MPI_Isend(data, (int)bytes, MPI_CHAR, rank, tag, MPI_COMM_WORLD, request);
}

static void begin_receive(void* data, long bytes, int rank, int tag, Request* request) {
  MPI_Irecv(data, (int)bytes, MPI_CHAR, rank, tag, MPI_COMM_WORLD, request);
}

static void end_request(Request* request) {
  MPI_Wait(request, MPI_STATUS_IGNORE);
}
