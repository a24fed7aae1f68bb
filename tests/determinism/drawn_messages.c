// Drawn programs of messages and computation: drawn_messages SEED. Every rank draws the same 40 phases:
// directed messages that are waited for in several ways, persistent and blocking ones, collectives,
// nonblocking collectives beside others, and messages of all ranks to one. No phase
// depends on times, so another machine executes the same operations.
#include <mpi.h>
#include <stdlib.h>

#include "apenet_compute.h"

enum { phases = 40, buffers = 8, most_bytes = 1 << 17, most_requests = 16 };

static unsigned long state;
static char out[buffers][most_bytes];
static char in[buffers][most_bytes];
static int size;
static int right;
static int left;

static unsigned draw(unsigned count) {
  state = state * 6364136223846793005UL + 1442695040888963407UL;
  return (unsigned)(state >> 33) % count;
}

// Messages to the right, `count` at once; `how` they are waited for.
static void exchange(int count, int bytes, unsigned how, double compute_s) {
  MPI_Request requests[most_requests];
  int made = 0;
  for (int i = 0; i < count; ++i)
    MPI_Irecv(in[i], bytes, MPI_CHAR, left, i, MPI_COMM_WORLD, &requests[made++]);
  for (int i = 0; i < count; ++i)
    MPI_Isend(out[i], bytes, MPI_CHAR, right, i, MPI_COMM_WORLD, &requests[made++]);
  ape_compute_seconds(compute_s);
  if (how == 0) {
    MPI_Waitall(made, requests, MPI_STATUSES_IGNORE);
  } else if (how == 1) {
    for (int i = 0; i < made; ++i) {
      MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
      ape_compute_seconds(3e-6);
    }
  } else if (how == 2) {
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    ape_compute_seconds(5e-6);
    MPI_Waitall(made - count, requests + count, MPI_STATUSES_IGNORE);
  } else {
    for (int is_done = 0; !is_done;) MPI_Testall(made, requests, &is_done, MPI_STATUSES_IGNORE);
  }
}

static void exchange_persistently(int bytes, double compute_s) {
  MPI_Request requests[2];
  MPI_Send_init(out[0], bytes, MPI_CHAR, right, 8, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(in[0], bytes, MPI_CHAR, left, 8, MPI_COMM_WORLD, &requests[1]);
  for (int i = 0; i < 3; ++i) {
    MPI_Startall(2, requests);
    ape_compute_seconds(compute_s);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

static void overlap_collectives(int bytes, int root, double compute_s) {
  MPI_Request requests[3];
  const int numbers = bytes / (int)sizeof(double) + 1;
  MPI_Iallreduce(out[0], in[0], numbers, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
  MPI_Ibcast(in[2], bytes, MPI_CHAR, root, MPI_COMM_WORLD, &requests[1]);
  ape_compute_seconds(compute_s);
  MPI_Irecv(in[4], bytes, MPI_CHAR, left, 5, MPI_COMM_WORLD, &requests[2]);
  MPI_Send(out[4], bytes, MPI_CHAR, right, 5, MPI_COMM_WORLD);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
}

static void collect_behind_a_barrier(int bytes) {
  MPI_Request requests[2];
  MPI_Ialltoall(out[0], bytes / size + 1, MPI_CHAR, in[0], bytes / size + 1, MPI_CHAR, MPI_COMM_WORLD,
                &requests[0]);
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

static void collect_from_all(int bytes, int rank, int root, double compute_s) {
  if (rank == root) {
    for (int i = 0; i < size; ++i)
      if (i != root) MPI_Recv(in[0], bytes, MPI_CHAR, i, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return;
  }
  ape_compute_seconds(compute_s * rank);
  MPI_Ssend(out[0], bytes, MPI_CHAR, root, 7, MPI_COMM_WORLD);
}

static void collect(unsigned how, int bytes, int root) {
  const int part = bytes / size + 1;
  const int numbers = part / (int)sizeof(double) + 1;
  const MPI_Comm all = MPI_COMM_WORLD;
  switch (how) {
    case 0:
      MPI_Allreduce(MPI_IN_PLACE, in[0], bytes / (int)sizeof(double) + 1, MPI_DOUBLE, MPI_SUM, all);
      break;
    case 1:
      MPI_Bcast(in[0], bytes, MPI_CHAR, root, all);
      break;
    case 2:
      MPI_Reduce(out[0], in[0], numbers, MPI_DOUBLE, MPI_SUM, root, all);
      break;
    case 3:
      MPI_Alltoall(out[0], part, MPI_CHAR, in[0], part, MPI_CHAR, all);
      break;
    case 4:
      MPI_Allgather(out[0], part, MPI_CHAR, in[0], part, MPI_CHAR, all);
      break;
    case 5:
      MPI_Scan(out[0], in[0], numbers, MPI_DOUBLE, MPI_SUM, all);
      break;
    case 6:
      MPI_Reduce_scatter_block(out[0], in[0], numbers, MPI_DOUBLE, MPI_SUM, all);
      break;
    default:
      MPI_Barrier(all);
      break;
  }
}

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  state = argc > 1 ? strtoul(argv[1], NULL, 10) * 7919 + 1 : 1;
  for (int phase = 0; phase < phases; ++phase) {
    const unsigned kind = draw(12);
    const unsigned collective = draw(8);
    const int count = 1 + (int)draw(6);
    const int bytes = 1 << draw(17);
    const int shift = 1 + (int)draw((unsigned)size - 1);
    const unsigned how = draw(4);
    const double compute_s = 20e-6 * draw(3);
    right = (rank + shift) % size;
    left = (rank + size - shift) % size;
    ape_compute_seconds(compute_s * (1 + (rank + phase) % 3));
    switch (kind) {
      case 0:
      case 1:
        exchange(count, bytes, how, compute_s);
        break;
      case 2:
        exchange_persistently(bytes, compute_s);
        break;
      case 3:
        MPI_Sendrecv(out[0], bytes, MPI_CHAR, right, 9, in[0], bytes, MPI_CHAR, left, 9, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        break;
      case 4:
        collect_from_all(bytes, rank, phase % size, compute_s);
        break;
      case 5:
        overlap_collectives(bytes, phase % size, compute_s);
        break;
      case 6:
      case 7:
      case 8:
      case 9:
        collect(collective, bytes, phase % size);
        break;
      default:
        collect_behind_a_barrier(bytes);
        break;
    }
  }
  MPI_Finalize();
  return 0;
}
