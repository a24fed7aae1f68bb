// fan_out: one rank sends to several others at once.
//
//   fan_out MESSAGES BYTES...
//
// For each size BYTES, rank 0 sends MESSAGES messages to each other rank, with up to `window` of them to each
// under way at the same time, and waits for an empty answer of each. MESSAGES 0 stands for 32 up to 64 KiB
// and 8 above. Place rank 0 on a node and the others on its neighbours. Prints each size, and the bandwidth
// with which rank 0 sent to all of them together, in MiB/s.
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { data_tag = 1, answer_tag = 2, window = 8, exit_bad_input = 2, first_size = 2 };
enum { few_messages = 8, many_messages = 32, small_bytes = 65536, page_bytes = 4096 };

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

// Returns the bandwidth; only rank 0 knows it.
static double measure(int bytes, int messages, int rank, int receivers) {
  const size_t pages = ((size_t)bytes + page_bytes - 1) / page_bytes;
  char* buffer = aligned_alloc(page_bytes, pages * page_bytes);
  const int request_count = rank == 0 ? window * receivers : messages;
  MPI_Request* requests = malloc(sizeof *requests * (size_t)request_count);
  if (buffer == NULL || requests == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  memset(buffer, 0, (size_t)bytes);
  double mib_s = 0;
  if (rank > 0) {
    receive_all(buffer, bytes, messages, requests);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    send_to_all(buffer, bytes, messages, receivers, requests);
    mib_s = (double)bytes * messages * receivers / (MPI_Wtime() - start) / (1 << 20);
  }
  free(requests);
  free(buffer);
  return mib_s;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  bool is_valid = argc > first_size && atoi(argv[1]) >= 0 && size >= 2;
  for (int i = first_size; i < argc; ++i) is_valid = is_valid && atoi(argv[i]) >= 1;
  if (!is_valid) {
    if (rank == 0) fprintf(stderr, "usage: fan_out MESSAGES BYTES..., with at least 2 ranks\n");
    MPI_Finalize();
    return exit_bad_input;
  }
  for (int i = first_size; i < argc; ++i) {
    const int bytes = atoi(argv[i]);
    int messages = atoi(argv[1]);
    if (messages == 0) messages = bytes <= small_bytes ? many_messages : few_messages;
    const double mib_s = measure(bytes, messages, rank, size - 1);
    if (rank == 0) printf("%d %.6f\n", bytes, mib_s);
  }
  MPI_Finalize();
  return 0;
}
