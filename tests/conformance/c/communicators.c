// Communicators that are created and freed: duplicates, splits, intercommunicators, groups, graphs.
#include "check.h"

static int sum_over(MPI_Comm comm, int value) {
  int sum = 0;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum;
}

// The same tag in two communicators denotes two different messages.
static void keep_apart(struct World world) {
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  const int right = (world.rank + 1) % world.size;
  const int left = (world.rank + world.size - 1) % world.size;
  const int in_world = pattern(world.rank, 1, 0);
  const int in_copy = pattern(world.rank, 2, 0);
  int got_world = 0;
  int got_copy = 0;
  MPI_Request requests[2];
  MPI_Isend(&in_world, 1, MPI_INT, right, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&in_copy, 1, MPI_INT, right, 0, copy, &requests[1]);
  MPI_Recv(&got_copy, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, copy, MPI_STATUS_IGNORE);
  MPI_Recv(&got_world, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(got_world == pattern(left, 1, 0) && got_copy == pattern(left, 2, 0));
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Comm_free(&copy);
}

// Creates more communicators in sequence than an implementation has context ids at a time.
static void many_in_sequence(struct World world) {
  for (int i = 0; i < 300; ++i) {
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, (world.rank + i) % 2, -world.rank, &part);
    if (i % 50 == 0) {
      int expected = 0;
      for (int rank = 0; rank < world.size; ++rank)
        expected += (rank + i) % 2 == (world.rank + i) % 2 ? rank : 0;
      CHECK(sum_over(part, world.rank) == expected);
    }
    MPI_Comm_free(&part);
  }
}

static void bridge_halves(struct World world) {
  const int low = world.rank < world.size / 2;
  MPI_Comm half;
  MPI_Comm between;
  MPI_Comm merged;
  MPI_Comm_split(MPI_COMM_WORLD, low, world.rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? world.size / 2 : 0, 77, &between);
  int others = 0;
  MPI_Comm_remote_size(between, &others);
  CHECK(others == (low ? world.size - world.size / 2 : world.size / 2));
  int rank = 0;
  MPI_Comm_rank(between, &rank);
  if (rank < others) {
    int value = 0;
    MPI_Sendrecv(&world.rank, 1, MPI_INT, rank, 3, &value, 1, MPI_INT, rank, 3, between, MPI_STATUS_IGNORE);
    CHECK(value == (low ? rank + world.size / 2 : rank));
  }
  int root_value = world.rank == 0 ? 99 : 0;
  MPI_Bcast(&root_value, 1, MPI_INT, low ? (world.rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0, between);
  if (!low) CHECK(root_value == 99);
  MPI_Intercomm_merge(between, !low, &merged);
  int place = 0;
  MPI_Comm_rank(merged, &place);
  CHECK(place == world.rank);
  CHECK(sum_over(merged, 1) == world.size);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
}

static void grids_and_graphs(struct World world) {
  int dims[2] = {0, 0};
  const int periodic[2] = {1, 1};
  MPI_Dims_create(world.size, 2, dims);
  MPI_Comm grid;
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periodic, 1, &grid);
  int mine = 0;
  MPI_Comm_rank(grid, &mine);
  int from[4];
  MPI_Neighbor_allgather(&mine, 1, MPI_INT, from, 1, MPI_INT, grid);
  for (int dimension = 0; dimension < 2; ++dimension) {
    int below = 0;
    int above = 0;
    MPI_Cart_shift(grid, dimension, 1, &below, &above);
    CHECK(from[2 * dimension] == below && from[2 * dimension + 1] == above);
  }
  MPI_Comm row;
  const int keep[2] = {0, 1};
  MPI_Cart_sub(grid, keep, &row);
  CHECK(sum_over(row, 1) == dims[1]);
  MPI_Comm_free(&row);
  MPI_Comm_free(&grid);

  const int right = (world.rank + 1) % world.size;
  const int left = (world.rank + world.size - 1) % world.size;
  MPI_Comm ring;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, MPI_UNWEIGHTED, 1, &right, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &ring);
  int value = -1;
  MPI_Neighbor_alltoall(&world.rank, 1, MPI_INT, &value, 1, MPI_INT, ring);
  CHECK(value == left);
  MPI_Comm_free(&ring);

  MPI_Group everybody;
  MPI_Group odd;
  MPI_Comm_group(MPI_COMM_WORLD, &everybody);
  int range[1][3] = {{1, world.size - 1, 2}};
  if (world.size > 1) {
    MPI_Group_range_incl(everybody, 1, range, &odd);
    MPI_Comm odds = MPI_COMM_NULL;
    if (world.rank % 2 == 1) {
      MPI_Comm_create_group(MPI_COMM_WORLD, odd, 5, &odds);
      CHECK(sum_over(odds, 1) == world.size / 2);
      MPI_Comm_free(&odds);
    }
    MPI_Group_free(&odd);
  }
  MPI_Group_free(&everybody);
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  keep_apart(world);
  many_in_sequence(world);
  if (world.size > 1) bridge_halves(world);
  grids_and_graphs(world);
  return end_program(world);
}
