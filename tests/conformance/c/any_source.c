// Matching: messages of one sender stay in order, wildcards accept any message, tags select among waiting
// ones.
#include "check.h"

enum { rounds = 40, eager_ints = 4, rendezvous_ints = 5000 };

// All ranks send to rank 0, small and large messages alternately; rank 0 receives from any source.
static void take_from_anybody(struct World world) {
  static int buffer[rendezvous_ints];
  if (world.rank != 0) {
    for (int i = 0; i < rounds; ++i) {
      const int count = i % 3 == 0 ? rendezvous_ints : eager_ints;
      for (int k = 0; k < count; ++k) buffer[k] = pattern(world.rank, i, k);
      MPI_Send(buffer, count, MPI_INT, 0, i, MPI_COMM_WORLD);
    }
    return;
  }
  int* next = calloc((size_t)world.size, sizeof(int));
  for (int i = 0; i < rounds * (world.size - 1); ++i) {
    MPI_Status status;
    int count = 0;
    MPI_Recv(buffer, rendezvous_ints, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    const int message = next[status.MPI_SOURCE]++;
    CHECK(status.MPI_TAG == message);
    CHECK(count == (message % 3 == 0 ? rendezvous_ints : eager_ints));
    for (int k = 0; k < count; ++k) CHECK(buffer[k] == pattern(status.MPI_SOURCE, message, k));
  }
  for (int rank = 1; rank < world.size; ++rank) CHECK(next[rank] == rounds);
  free(next);
}

// Receives the last tag first, so that all other messages wait unexpected.
static void take_backwards(struct World world) {
  const int partner = world.rank ^ 1;
  if (partner >= world.size) return;
  MPI_Request requests[rounds];
  int outgoing[rounds];
  for (int i = 0; i < rounds; ++i) {
    outgoing[i] = pattern(world.rank, i, 0);
    MPI_Isend(&outgoing[i], 1, MPI_INT, partner, i, MPI_COMM_WORLD, &requests[i]);
  }
  for (int i = rounds - 1; i >= 0; --i) {
    int value = 0;
    MPI_Recv(&value, 1, MPI_INT, partner, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(value == pattern(partner, i, 0));
  }
  MPI_Waitall(rounds, requests, MPI_STATUSES_IGNORE);
}

// Receives posted before anything is sent are matched in the order of posting.
static void fill_in_order(struct World world) {
  const int right = (world.rank + 1) % world.size;
  const int left = (world.rank + world.size - 1) % world.size;
  MPI_Request requests[rounds];
  int incoming[rounds];
  for (int i = 0; i < rounds; ++i)
    MPI_Irecv(&incoming[i], 1, MPI_INT, i % 2 == 0 ? left : MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
              &requests[i]);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < rounds; ++i) {
    const int value = pattern(world.rank, i, 1);
    MPI_Send(&value, 1, MPI_INT, right, 1000 + i, MPI_COMM_WORLD);
  }
  MPI_Status statuses[rounds];
  MPI_Waitall(rounds, requests, statuses);
  for (int i = 0; i < rounds; ++i) {
    CHECK(incoming[i] == pattern(left, i, 1));
    CHECK(statuses[i].MPI_TAG == 1000 + i && statuses[i].MPI_SOURCE == left);
  }
}

// Synchronous sends end only when matched; ready sends find their receive.
static void send_in_every_mode(struct World world) {
  const int partner = world.rank ^ 1;
  if (partner >= world.size) return;
  int value = 0;
  MPI_Request request;
  MPI_Irecv(&value, 1, MPI_INT, partner, 1, MPI_COMM_WORLD, &request);
  MPI_Sendrecv(NULL, 0, MPI_INT, partner, 2, NULL, 0, MPI_INT, partner, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Rsend(&world.rank, 1, MPI_INT, partner, 1, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(value == partner);

  const int mine = world.rank + 100;
  MPI_Issend(&mine, 1, MPI_INT, partner, 3, MPI_COMM_WORLD, &request);
  int flag = 0;
  MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  MPI_Recv(&value, 1, MPI_INT, partner, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (!flag) MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(value == partner + 100);

  char attached[1024 + MPI_BSEND_OVERHEAD];
  MPI_Buffer_attach(attached, sizeof attached);
  MPI_Bsend(&mine, 1, MPI_INT, partner, 4, MPI_COMM_WORLD);
  MPI_Recv(&value, 1, MPI_INT, partner, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(value == partner + 100);
  void* detached = NULL;
  int size = 0;
  MPI_Buffer_detach(&detached, &size);
  CHECK(detached == attached);
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  // The barriers keep messages of one part from the wildcards of another.
  take_from_anybody(world);
  MPI_Barrier(MPI_COMM_WORLD);
  take_backwards(world);
  MPI_Barrier(MPI_COMM_WORLD);
  fill_in_order(world);
  MPI_Barrier(MPI_COMM_WORLD);
  send_in_every_mode(world);
  return end_program(world);
}
