// One-sided communication with passive targets: locks, atomics, flushes, dynamic windows.
#include "check.h"

enum { rounds = 30, large = 300000 };

// A counter that all ranks increment, with and without an exclusive lock.
static void count_together(struct World world) {
  long* memory = NULL;
  MPI_Win window;
  MPI_Win_allocate(4 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  for (int i = 0; i < 4; ++i) memory[i] = 0;
  MPI_Barrier(MPI_COMM_WORLD);

  const long one = 1;
  long last = -1;
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < rounds; ++i) {
    long before = 0;
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
    CHECK(before > last);
    last = before;
  }
  MPI_Win_unlock_all(window);

  for (int i = 0; i < rounds; ++i) {
    long value = 0;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Get(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, window);
    MPI_Win_flush(0, window);
    ++value;
    MPI_Put(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, window);
    MPI_Win_unlock(0, window);
  }

  // The first swap wins; all ranks agree on the winner.
  long winner = -1;
  const long nobody = 0;
  const long me = world.rank + 1;
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
  MPI_Compare_and_swap(&me, &nobody, &winner, MPI_LONG, 0, 2, window);
  MPI_Win_unlock(0, window);
  const int won = winner == 0;
  int winners = 0;
  MPI_Allreduce(&won, &winners, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(winners == 1);

  MPI_Barrier(MPI_COMM_WORLD);
  long counters[3] = {0};
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
  MPI_Get(counters, 3, MPI_LONG, 0, 0, 3, MPI_LONG, window);
  MPI_Win_unlock(0, window);
  CHECK(counters[0] == (long)rounds * world.size);
  CHECK(counters[1] == (long)rounds * world.size);
  CHECK(counters[2] >= 1 && counters[2] <= world.size);
  MPI_Win_free(&window);
}

// The target neither computes nor calls MPI until it looks.
static void write_to_a_silent_target(struct World world) {
  double* memory = NULL;
  MPI_Win window;
  MPI_Win_allocate(large * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  const int target = (world.rank + 1) % world.size;
  const int writer = (world.rank + world.size - 1) % world.size;
  double* outgoing = malloc(large * sizeof(double));
  for (int i = 0; i < large; ++i) outgoing[i] = world.rank + i * 0.5;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window);
  MPI_Put(outgoing, large, MPI_DOUBLE, target, 0, large, MPI_DOUBLE, window);
  MPI_Win_unlock(target, window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, world.rank, 0, window);
  for (int i = 0; i < large; ++i) CHECK(memory[i] == writer + i * 0.5);
  MPI_Win_unlock(world.rank, window);
  MPI_Barrier(MPI_COMM_WORLD);

  // Requests of single operations; they fetch the values before the addition.
  double* before = malloc(large * sizeof(double));
  MPI_Request requests[2];
  MPI_Win_lock_all(0, window);
  MPI_Rget_accumulate(outgoing, large / 2, MPI_DOUBLE, before, large / 2, MPI_DOUBLE, target, 0, large / 2,
                      MPI_DOUBLE, MPI_SUM, window, &requests[0]);
  MPI_Rget(before + large / 2, large / 2, MPI_DOUBLE, target, large / 2, large / 2, MPI_DOUBLE, window,
           &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Win_unlock_all(window);
  for (int i = 0; i < large; ++i) CHECK(before[i] == world.rank + i * 0.5);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, world.rank, 0, window);
  for (int i = 0; i < large / 2; ++i) CHECK(memory[i] == 2 * (writer + i * 0.5));
  MPI_Win_unlock(world.rank, window);
  free(before);
  free(outgoing);
  MPI_Win_free(&window);
}

static void attach_later(struct World world) {
  MPI_Win window;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  int cells[8] = {0};
  MPI_Win_attach(window, cells, sizeof cells);
  MPI_Aint mine = 0;
  MPI_Get_address(cells, &mine);
  MPI_Aint* addresses = malloc(sizeof(MPI_Aint) * (size_t)world.size);
  MPI_Allgather(&mine, 1, MPI_AINT, addresses, 1, MPI_AINT, MPI_COMM_WORLD);
  const int target = (world.rank + 1) % world.size;
  const int value = pattern(world.rank, 5, 5);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window);
  MPI_Put(&value, 1, MPI_INT, target, MPI_Aint_add(addresses[target], 3 * sizeof(int)), 1, MPI_INT, window);
  MPI_Win_unlock(target, window);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(cells[3] == pattern((world.rank + world.size - 1) % world.size, 5, 5));
  CHECK(cells[2] == 0 && cells[4] == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_detach(window, cells);
  MPI_Win_free(&window);
  free(addresses);
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  count_together(world);
  write_to_a_silent_target(world);
  attach_later(world);
  return end_program(world);
}
