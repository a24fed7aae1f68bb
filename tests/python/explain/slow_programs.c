// Programs with one fault each, and the same programs mended: slow NAME [mended].
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "apenet_compute.h"

enum { rounds = 10, most_bytes = 1 << 18, most_ranks = 64 };
static char out[most_ranks][most_bytes];
static char in[most_bytes];
static int rank, ranks;

// Even ranks send what they had before they computed.
static void late_sender(int mended) {
  for (int i = 0; i < rounds; ++i) {
    if (rank % 2 == 0) {
      if (!mended) ape_compute_seconds(100e-6);
      MPI_Send(out[0], 1000, MPI_CHAR, rank + 1, 0, MPI_COMM_WORLD);
      if (mended) ape_compute_seconds(100e-6);
    } else {
      MPI_Recv(in, 1000, MPI_CHAR, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      ape_compute_seconds(100e-6);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

// A ring: whether neighbours are near is the placement's part.
static void ring(int bytes) {
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  for (int i = 0; i < rounds; ++i) {
    MPI_Sendrecv(out[0], bytes, MPI_CHAR, next, 0, in, bytes, MPI_CHAR, previous, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }
}

// Even ranks send messages for which the receivers, who compute, have not asked yet.
static void rendezvous(void) {
  for (int i = 0; i < rounds; ++i) {
    if (rank % 2 == 0) {
      MPI_Send(out[0], 10000, MPI_CHAR, rank + 1, 0, MPI_COMM_WORLD);
      ape_compute_seconds(200e-6);
    } else {
      ape_compute_seconds(200e-6);
      MPI_Recv(in, 10000, MPI_CHAR, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

// Rank r exchanges with rank r + ranks / 2.
static void far_partner(int bytes) {
  const int partner = (rank + ranks / 2) % ranks;
  for (int i = 0; i < rounds; ++i) {
    MPI_Sendrecv(out[0], bytes, MPI_CHAR, partner, 0, in, bytes, MPI_CHAR, partner, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }
}

// Rank 0 sends to one rank after the other.
static void serialised(int mended) {
  MPI_Request requests[most_ranks];
  for (int i = 0; i < rounds; ++i) {
    if (rank > 0) {
      MPI_Recv(in, 40000, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      continue;
    }
    for (int to = 1; to < ranks; ++to) {
      if (mended)
        MPI_Isend(out[to], 40000, MPI_CHAR, to, 0, MPI_COMM_WORLD, &requests[to - 1]);
      else
        MPI_Send(out[to], 40000, MPI_CHAR, to, 0, MPI_COMM_WORLD);
    }
    if (mended) MPI_Waitall(ranks - 1, requests, MPI_STATUSES_IGNORE);
  }
}

static void computing(int is_equal) {
  for (int i = 0; i < rounds; ++i) {
    ape_compute_seconds(is_equal ? 500e-6 * (ranks + 1) / 2 : 500e-6 * (rank + 1));
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

// Each rank waits for a message that the next one sends only afterwards.
static void deadlock(void) {
  MPI_Recv(in, 8, MPI_CHAR, (rank + 1) % ranks, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send(out[0], 8, MPI_CHAR, (rank + ranks - 1) % ranks, 5, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char* name = argc > 1 ? argv[1] : "";
  const int mended = argc > 2 && strcmp(argv[2], "mended") == 0;
  if (strcmp(name, "late-sender") == 0) late_sender(mended);
  if (strcmp(name, "ring") == 0) ring(100000);
  if (strcmp(name, "rendezvous") == 0) rendezvous();
  if (strcmp(name, "far-partner") == 0) far_partner(most_bytes);
  if (strcmp(name, "serialised") == 0) serialised(mended);
  if (strcmp(name, "imbalance") == 0) computing(mended);
  if (strcmp(name, "deadlock") == 0) deadlock();
  if (strcmp(name, "alone") == 0) ape_compute_seconds(1e-3);
  MPI_Finalize();
  return 0;
}
