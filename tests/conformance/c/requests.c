// Requests of all kinds: test loops, persistent, partitioned, generalised, to oneself, freed early.
#include "check.h"

enum { rounds = 25, partitions = 8, words = 6000 };

static void test_loops(struct World world) {
  const int right = (world.rank + 1) % world.size;
  const int left = (world.rank + world.size - 1) % world.size;
  static int outgoing[rounds][words];
  static int incoming[rounds][words];
  MPI_Request requests[2 * rounds];
  for (int i = 0; i < rounds; ++i) {
    const int count = i % 2 == 0 ? 3 : words;
    for (int k = 0; k < count; ++k) outgoing[i][k] = pattern(world.rank, i, k);
    MPI_Irecv(incoming[i], count, MPI_INT, left, i, MPI_COMM_WORLD, &requests[i]);
    MPI_Isend(outgoing[i], count, MPI_INT, right, i, MPI_COMM_WORLD, &requests[rounds + i]);
  }
  int open = 2 * rounds;
  long polls = 0;
  while (open > 0) {
    int indices[2 * rounds];
    int index = MPI_UNDEFINED;
    int flag = 0;
    int count = 0;
    if (polls++ % 2 == 0) {
      MPI_Testany(2 * rounds, requests, &index, &flag, MPI_STATUS_IGNORE);
      if (flag && index != MPI_UNDEFINED) --open;
    } else {
      MPI_Testsome(2 * rounds, requests, &count, indices, MPI_STATUSES_IGNORE);
      if (count > 0) open -= count;
    }
  }
  for (int i = 0; i < rounds; ++i) {
    for (int k = 0; k < (i % 2 == 0 ? 3 : words); ++k) CHECK(incoming[i][k] == pattern(left, i, k));
  }
}

static void persistent(struct World world) {
  const int right = (world.rank + 1) % world.size;
  const int left = (world.rank + world.size - 1) % world.size;
  static int outgoing[words];
  static int incoming[words];
  MPI_Request requests[2];
  MPI_Recv_init(incoming, words, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(outgoing, words, MPI_INT, right, 1, MPI_COMM_WORLD, &requests[1]);
  for (int round = 0; round < rounds; ++round) {
    for (int k = 0; k < words; ++k) outgoing[k] = pattern(world.rank, round, k);
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < words; ++k) CHECK(incoming[k] == pattern(left, round, k));
  }
  for (int i = 0; i < 2; ++i) MPI_Request_free(&requests[i]);
}

// MPI 4: a message whose parts become ready one after another.
static void partitioned(struct World world) {
  const int right = (world.rank + 1) % world.size;
  const int left = (world.rank + world.size - 1) % world.size;
  static int outgoing[partitions * words];
  static int incoming[partitions * words];
  MPI_Request send;
  MPI_Request receive;
  MPI_Psend_init(outgoing, partitions, words, MPI_INT, right, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
  MPI_Precv_init(incoming, partitions, words, MPI_INT, left, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
  for (int round = 0; round < 3; ++round) {
    MPI_Start(&receive);
    MPI_Start(&send);
    for (int i = partitions - 1; i >= 0; --i) {
      for (int k = 0; k < words; ++k) outgoing[i * words + k] = pattern(world.rank, round + i, k);
      MPI_Pready(i, send);
    }
    int arrived = 0;
    while (!arrived) MPI_Parrived(receive, 0, &arrived);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    for (int i = 0; i < partitions; ++i) {
      for (int k = 0; k < words; ++k) CHECK(incoming[i * words + k] == pattern(left, round + i, k));
    }
  }
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
}

static void to_myself(struct World world) {
  for (int count = 1; count <= words; count *= 20) {
    static int outgoing[words];
    static int incoming[words];
    for (int k = 0; k < count; ++k) outgoing[k] = pattern(world.rank, count, k);
    MPI_Request request;
    MPI_Isend(outgoing, count, MPI_INT, world.rank, 7, MPI_COMM_WORLD, &request);
    MPI_Recv(incoming, count, MPI_INT, world.rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < count; ++k) CHECK(incoming[k] == pattern(world.rank, count, k));
    MPI_Sendrecv_replace(outgoing, count, MPI_INT, 0, 8, 0, 8, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    for (int k = 0; k < count; ++k) CHECK(outgoing[k] == pattern(world.rank, count, k));
  }
}

// A request that is freed immediately still delivers its message.
static void freed_early(struct World world) {
  const int partner = world.rank ^ 1;
  if (partner >= world.size) return;
  static int outgoing[words];
  static int incoming[words];
  for (int k = 0; k < words; ++k) outgoing[k] = pattern(world.rank, 12, k);
  MPI_Request request;
  MPI_Isend(outgoing, words, MPI_INT, partner, 9, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
  MPI_Recv(incoming, words, MPI_INT, partner, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int k = 0; k < words; ++k) CHECK(incoming[k] == pattern(partner, 12, k));
  MPI_Sendrecv(NULL, 0, MPI_INT, partner, 10, NULL, 0, MPI_INT, partner, 10, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  test_loops(world);
  persistent(world);
  partitioned(world);
  to_myself(world);
  freed_early(world);
  return end_program(world);
}
