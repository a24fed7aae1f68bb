// Dynamic windows: memory that is attached later, of the own rank and of the next.
#include "check.h"

enum { words = 100 };

int main(int argc, char** argv) {
  static int memory[words];
  static int fetched[words];
  const struct World world = begin_program(&argc, &argv);
  MPI_Win window;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  for (int i = 0; i < words; ++i) memory[i] = pattern(world.rank, 0, i);
  MPI_Win_attach(window, memory, sizeof memory);
  MPI_Aint* addresses = malloc((size_t)world.size * sizeof *addresses);
  MPI_Aint address;
  MPI_Get_address(memory, &address);
  MPI_Allgather(&address, 1, MPI_AINT, addresses, 1, MPI_AINT, MPI_COMM_WORLD);
  const int targets[] = {world.rank, (world.rank + 1) % world.size};
  for (int i = 0; i < 2; ++i) {
    MPI_Win_lock(MPI_LOCK_SHARED, targets[i], 0, window);
    MPI_Get(fetched, words, MPI_INT, targets[i], addresses[targets[i]], words, MPI_INT, window);
    MPI_Win_unlock(targets[i], window);
    for (int word = 0; word < words; ++word) CHECK(fetched[word] == pattern(targets[i], 0, word));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const int one = 1;
  MPI_Win_lock_all(0, window);
  for (int target = 0; target < world.size; ++target)
    MPI_Accumulate(&one, 1, MPI_INT, target, addresses[target], 1, MPI_INT, MPI_SUM, window);
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, world.rank, 0, window);
  CHECK(memory[0] == pattern(world.rank, 0, 0) + world.size);
  MPI_Win_unlock(world.rank, window);
  MPI_Win_detach(window, memory);
  MPI_Win_free(&window);
  free(addresses);
  return end_program(world);
}
