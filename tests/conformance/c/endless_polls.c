// Loops that only poll messages and the clock end even if a poll costs nothing, and see a message as
// early as a rank that waits for it.
#include "check.h"

static double seconds_of_exchange(struct World world, int size, int polls) {
  static char buffers[2][100000];
  const int other = world.rank ^ 1;
  MPI_Request requests[2];
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  MPI_Isend(buffers[0], size, MPI_CHAR, other, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(buffers[1], size, MPI_CHAR, other, 0, MPI_COMM_WORLD, &requests[1]);
  int done = !polls;
  while (!done) MPI_Test(&requests[1], &done, MPI_STATUS_IGNORE);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  return MPI_Wtime() - begin;
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  if (world.size % 2 == 0) {
    for (int size = 100; size <= 100000; size *= 1000) {
      const double waited = seconds_of_exchange(world, size, 0);
      const double polled = seconds_of_exchange(world, size, 1);
      CHECK(polled >= waited - 1e-9 && polled < 1.1 * waited + 1e-6);
      int found = 0;
      char buffer[100000];
      MPI_Request request;
      MPI_Isend(buffer, size, MPI_CHAR, world.rank ^ 1, 1, MPI_COMM_WORLD, &request);
      while (!found) MPI_Iprobe(world.rank ^ 1, 1, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
      static char received[100000];
      MPI_Recv(received, size, MPI_CHAR, world.rank ^ 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  }
  const double begin = MPI_Wtime();
  while (MPI_Wtime() < begin + 1e-3) continue;
  CHECK(MPI_Wtime() < begin + 1.1e-3);
  return end_program(world);
}
