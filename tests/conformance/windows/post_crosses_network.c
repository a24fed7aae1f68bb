// MPI_Win_start waits for the target's MPI_Win_post, and what tells it of that crosses the network: it ends a
// latency after the post at the earliest.
#define _POSIX_C_SOURCE 200809L  // nanosleep
#include <time.h>

#include "../c/check.h"

static double half_round_trip(struct World world) {
  char byte = 0;
  const double begin = MPI_Wtime();
  for (int side = 0; side < 2; ++side) {
    if (world.rank == side) MPI_Send(&byte, 1, MPI_CHAR, 1 - side, 0, MPI_COMM_WORLD);
    if (world.rank != side) MPI_Recv(&byte, 1, MPI_CHAR, side, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return (MPI_Wtime() - begin) / 2;
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  int word = 0;
  MPI_Win window;
  MPI_Group everybody;
  MPI_Group other;
  const int peer = 1 - world.rank;
  MPI_Win_create(&word, sizeof word, sizeof word, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Comm_group(MPI_COMM_WORLD, &everybody);
  MPI_Group_incl(everybody, 1, &peer, &other);
  half_round_trip(world);  // opens the connection
  MPI_Barrier(MPI_COMM_WORLD);
  const double latency = half_round_trip(world);
  MPI_Barrier(MPI_COMM_WORLD);
  double posted = 0;
  if (world.rank == 0) {
    const struct timespec nap = {.tv_nsec = 1000000};
    nanosleep(&nap, NULL);
    posted = MPI_Wtime();
    MPI_Win_post(other, 0, window);
    MPI_Win_wait(window);
    CHECK(word == 4711);
  } else {
    const int sent = 4711;
    MPI_Win_start(other, 0, window);
    const double started = MPI_Wtime();
    MPI_Put(&sent, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
    MPI_Win_complete(window);
    MPI_Send(&started, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
  }
  if (world.rank == 0) {
    double started = 0;
    MPI_Recv(&started, 1, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    // A tenth: what starts the access need not pay all that a message of the program pays.
    CHECK(started - posted > latency / 10);
  }
  MPI_Group_free(&other);
  MPI_Group_free(&everybody);
  MPI_Win_free(&window);
  return end_program(world);
}
