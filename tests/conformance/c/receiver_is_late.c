// More eager messages are under way than the mapping has slots for. Each costs its sender the same, and a
// later one reaches a receiver that has not taken the others.
#include <math.h>

#include "check.h"

enum { messages = 4800, parts = 4, ints = 1000 };

int main(int argc, char** argv) {
  static int buffer[ints];
  const struct World world = begin_program(&argc, &argv);
  if (world.rank == 1) {
    double took_s[parts];
    for (int part = 0; part < parts; ++part) {
      const double before_s = MPI_Wtime();
      for (int i = 0; i < messages / parts; ++i) {
        buffer[0] = buffer[ints - 1] = part * (messages / parts) + i;
        MPI_Send(buffer, ints, MPI_INT, 0, 0, MPI_COMM_WORLD);
      }
      took_s[part] = MPI_Wtime() - before_s;
      CHECK(fabs(took_s[part] - took_s[0]) < 1e-9);
    }
    MPI_Send(buffer, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
  }
  if (world.rank == 0 && world.size > 1) {
    MPI_Recv(buffer, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < messages; ++i) {
      MPI_Recv(buffer, ints, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(buffer[0] == i && buffer[ints - 1] == i);
    }
  }
  return end_program(world);
}
