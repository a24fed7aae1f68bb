// A profiler that works like MPI tools: interposed between program and library under each other's names.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int calls;

int MPI_Init(int* argc, char*** argv) {
  return PMPI_Init(argc, argv);
}

int MPI_Send(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm communicator) {
  ++calls;
  return PMPI_Send(data, count, type, to, tag, communicator);
}

int MPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
  ++calls;
  return PMPI_Test(request, done, status);
}

int MPI_Abort(MPI_Comm communicator, int status) {
  return PMPI_Abort(communicator, status);
}

int MPI_Finalize(void) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  printf("profiler: rank %d, %s\n", rank, calls > 0 ? "has seen calls" : "has seen nothing");
  return PMPI_Finalize();
}
