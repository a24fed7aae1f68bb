// Nonblocking collectives: several in progress, completed in another order than started.
#include "check.h"

enum { many = 16, wide = 3000 };

static void overlap(struct World world) {
  MPI_Request requests[6];
  int root_value = world.rank == 0 ? 4711 : 0;
  int sum = 0;
  const int mine = world.rank + 1;
  int* everybody = malloc(sizeof(int) * (size_t)world.size);
  int* to_all = malloc(sizeof(int) * (size_t)world.size);
  int* from_all = malloc(sizeof(int) * (size_t)world.size);
  for (int i = 0; i < world.size; ++i) to_all[i] = pattern(world.rank, i, 0);
  int prefix = 0;
  MPI_Ibcast(&root_value, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
  MPI_Iallgather(&mine, 1, MPI_INT, everybody, 1, MPI_INT, MPI_COMM_WORLD, &requests[2]);
  MPI_Ialltoall(to_all, 1, MPI_INT, from_all, 1, MPI_INT, MPI_COMM_WORLD, &requests[3]);
  MPI_Iscan(&mine, &prefix, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[4]);
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[5]);
  for (int i = 5; i >= 0; --i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  CHECK(root_value == 4711);
  CHECK(sum == world.size * (world.size + 1) / 2);
  CHECK(prefix == (world.rank + 1) * (world.rank + 2) / 2);
  for (int i = 0; i < world.size; ++i) {
    CHECK(everybody[i] == i + 1);
    CHECK(from_all[i] == pattern(i, world.rank, 0));
  }
  free(everybody);
  free(to_all);
  free(from_all);
}

// Point-to-point messages overlap collectives without interference.
static void mix(struct World world) {
  const int right = (world.rank + 1) % world.size;
  const int left = (world.rank + world.size - 1) % world.size;
  static double outgoing[many][wide];
  static double incoming[many][wide];
  MPI_Request requests[3 * many];
  int received[many];
  int sent[many];
  for (int i = 0; i < many; ++i) {
    for (int k = 0; k < wide; ++k) outgoing[i][k] = world.rank + i + k;
    sent[i] = pattern(world.rank, i, 2);
    MPI_Irecv(&received[i], 1, MPI_INT, left, i, MPI_COMM_WORLD, &requests[3 * i]);
    MPI_Iallreduce(outgoing[i], incoming[i], wide, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &requests[3 * i + 1]);
    MPI_Isend(&sent[i], 1, MPI_INT, right, i, MPI_COMM_WORLD, &requests[3 * i + 2]);
  }
  int done = 0;
  while (!done) MPI_Testall(3 * many, requests, &done, MPI_STATUSES_IGNORE);
  for (int i = 0; i < many; ++i) {
    CHECK(received[i] == pattern(left, i, 2));
    for (int k = 0; k < wide; ++k) CHECK(incoming[i][k] == world.size - 1 + i + k);
  }
}

static void blocking_ones(struct World world) {
  const int block = 2000;
  int* all = malloc(sizeof(int) * (size_t)(block * world.size));
  int* mine = malloc(sizeof(int) * (size_t)block);
  for (int i = 0; i < block; ++i) mine[i] = pattern(world.rank, 3, i);
  MPI_Gather(mine, block, MPI_INT, all, block, MPI_INT, world.size - 1, MPI_COMM_WORLD);
  if (world.rank == world.size - 1) {
    for (int i = 0; i < block * world.size; ++i) CHECK(all[i] == pattern(i / block, 3, i % block));
    for (int i = 0; i < block * world.size; ++i) all[i] = pattern(i / block, 4, i % block);
  }
  MPI_Scatter(all, block, MPI_INT, mine, block, MPI_INT, world.size - 1, MPI_COMM_WORLD);
  for (int i = 0; i < block; ++i) CHECK(mine[i] == pattern(world.rank, 4, i));
  const double value = world.rank + 0.5;
  double largest = 0;
  MPI_Reduce(&value, &largest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (world.rank == 0) CHECK(largest == world.size - 0.5);
  free(all);
  free(mine);
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  overlap(world);
  mix(world);
  blocking_ones(world);
  return end_program(world);
}
