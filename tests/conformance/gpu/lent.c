// One use of device memory in MPI, named by the argument; or host, all of them with memory of the host while
// device memory is allocated.
#include <string.h>

#include "../c/check.h"
#include "apenet_gpu.h"

enum { bytes = 400 };

static void call(const char* what, int rank, char* memory) {
  MPI_Datatype vector;
  MPI_Type_vector(10, 10, 20, MPI_CHAR, &vector);
  MPI_Type_commit(&vector);
  if (strcmp(what, "directed") == 0) {
    if (rank == 0) MPI_Send(memory, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(memory, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (strcmp(what, "vector") == 0) {
    if (rank == 0) MPI_Send(memory, 1, vector, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(memory, 1, vector, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (strcmp(what, "exchanged") == 0) {
    MPI_Sendrecv(memory, 1, MPI_CHAR, 1 - rank, 0, memory + bytes / 2, 1, vector, 1 - rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  } else if (strcmp(what, "matched") == 0) {
    MPI_Message message;
    if (rank == 0) MPI_Send(memory, 100, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) MPI_Mprobe(0, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Mrecv(memory, 1, vector, &message, MPI_STATUS_IGNORE);
  } else if (strcmp(what, "buffered") == 0) {
    static char attached[bytes + MPI_BSEND_OVERHEAD];
    MPI_Request request;
    MPI_Buffer_attach(attached, sizeof attached);
    MPI_Ibsend(memory, bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, &request);
    static char host[bytes];
    MPI_Recv(host, bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    void* buffer = NULL;
    int size = 0;
    MPI_Buffer_detach(&buffer, &size);
  } else if (strcmp(what, "replaced") == 0) {
    MPI_Sendrecv_replace(memory, bytes, MPI_CHAR, 1 - rank, 0, 1 - rank, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
  } else if (strcmp(what, "partitioned") == 0) {
    MPI_Request request;
    if (rank == 0)
      MPI_Psend_init(memory, 4, bytes / 4, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    if (rank == 1)
      MPI_Precv_init(memory, 4, bytes / 4, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    if (rank == 0) MPI_Pready_range(0, 3, request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
  } else if (strcmp(what, "bcast") == 0) {
    MPI_Bcast(memory, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
  } else {
    MPI_Win window;
    MPI_Win_create(memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(memory, 1, MPI_CHAR, 1 - rank, bytes / 2, 1, MPI_CHAR, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
  }
  MPI_Type_free(&vector);
}

int main(int argc, char** argv) {
  static char host[bytes];
  static const char* const all[] = {"directed", "vector",      "exchanged", "matched", "buffered",
                                    "replaced", "partitioned", "bcast",     "put"};
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* const device = ape_gpu_malloc(bytes);
  CHECK(device != NULL);
  if (strcmp(argv[1], "host") != 0) {
    call(argv[1], rank, device);
  } else {
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) call(all[i], rank, host);
  }
  ape_gpu_free(device);
  MPI_Finalize();
  return 0;
}
