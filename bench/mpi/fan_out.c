// fan_out: one rank sends to several others at once.
//
//   fan_out BYTES MESSAGES
//
// Rank 0 sends MESSAGES messages of BYTES to each other rank, with up to `window` of them to each under way
// at the same time, and waits for an empty answer of each. Place rank 0 on a node and the others on its
// neighbours. Prints the bandwidth with which rank 0 sent, in MiB/s.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { data_tag = 1, answer_tag = 2, window = 8, exit_bad_input = 2 };

static void send_to_all(char* buffer, int bytes, int messages, int receivers, MPI_Request* requests) {
  for (int i = 0; i < window * receivers; ++i) requests[i] = MPI_REQUEST_NULL;
  for (int i = 0; i < messages; ++i) {
    for (int rank = 1; rank <= receivers; ++rank) {
      MPI_Request* request = &requests[i % window * receivers + rank - 1];
      MPI_Wait(request, MPI_STATUS_IGNORE);
      MPI_Isend(buffer, bytes, MPI_CHAR, rank, data_tag, MPI_COMM_WORLD, request);
    }
  }
  MPI_Waitall(window * receivers, requests, MPI_STATUSES_IGNORE);
  for (int rank = 1; rank <= receivers; ++rank)
    MPI_Recv(NULL, 0, MPI_CHAR, rank, answer_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_all(char* buffer, int bytes, int messages, MPI_Request* requests) {
  for (int i = 0; i < messages; ++i)
    MPI_Irecv(buffer, bytes, MPI_CHAR, 0, data_tag, MPI_COMM_WORLD, &requests[i]);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
  MPI_Send(NULL, 0, MPI_CHAR, 0, answer_tag, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int bytes = argc == 3 ? atoi(argv[1]) : 0;
  const int messages = argc == 3 ? atoi(argv[2]) : 0;
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (bytes < 1 || messages < 1 || size < 2) {
    if (rank == 0) fprintf(stderr, "usage: fan_out BYTES MESSAGES, with at least 2 ranks\n");
    MPI_Finalize();
    return exit_bad_input;
  }
  const int receivers = size - 1;
  char* buffer = calloc((size_t)bytes, 1);
  MPI_Request* requests = malloc(sizeof *requests * (size_t)(rank == 0 ? window * receivers : messages));
  if (buffer == NULL || requests == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  if (rank > 0) {
    receive_all(buffer, bytes, messages, requests);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    send_to_all(buffer, bytes, messages, receivers, requests);
    const double seconds = MPI_Wtime() - start;
    printf("%.2f\n", (double)bytes * messages * receivers / seconds / (1 << 20));
  }
  free(requests);
  free(buffer);
  MPI_Finalize();
  return 0;
}
