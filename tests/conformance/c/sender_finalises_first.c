// Senders finalise while more of their messages are under way than the network has places for.
#include "check.h"

enum { messages = 5000, ints = 200 };

int main(int argc, char** argv) {
  static int buffer[ints];
  const struct World world = begin_program(&argc, &argv);
  if (world.rank == 0) {
    for (int i = 0; i < messages * (world.size > 1); ++i) {
      MPI_Recv(buffer, ints, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(buffer[0] == i && buffer[ints - 1] == i + ints);
    }
    printf("passed\n");
  }
  for (int i = 0; i < messages * (world.rank == 1); ++i) {
    buffer[0] = i;
    buffer[ints - 1] = i + ints;
    MPI_Send(buffer, ints, MPI_INT, 0, 0, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
