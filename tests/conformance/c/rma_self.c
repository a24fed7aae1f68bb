// Two ranks accumulate onto a number of one of them. The target's own accumulates never reach the network, so
// it waits for its own progress while all others wait for it.
#include "check.h"

enum { accumulates = 1000 };

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  int number = 0;
  const int one = 1;
  MPI_Comm pair;
  MPI_Comm_split(MPI_COMM_WORLD, world.rank / 2, world.rank, &pair);
  int size = 0;
  MPI_Comm_size(pair, &size);
  MPI_Win window;
  MPI_Win_create(&number, sizeof number, sizeof number, MPI_INFO_NULL, pair, &window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < accumulates; ++i) {
    MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window);
  }
  MPI_Win_fence(0, window);
  CHECK(number == (world.rank % 2 == 0 ? accumulates * size : 0));
  MPI_Win_free(&window);
  MPI_Comm_free(&pair);
  return end_program(world);
}
