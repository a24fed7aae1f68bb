// Long rows of calls that find no message, as made by programs that free what they have created.
// None may be taken for a wait: otherwise every rank would stop in one, and the row would end as a deadlock.
#include "check.h"

enum { communicators = 240, receives = 240 };

// Every rank frees on its own, while the network is empty.
static void free_many(struct World world) {
  static MPI_Comm copies[communicators];
  for (int i = 0; i < communicators; ++i) {
    if (world.size > 1) {
      MPI_Comm_dup(MPI_COMM_WORLD, &copies[i]);
    } else {
      MPI_Comm_dup(MPI_COMM_SELF, &copies[i]);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < communicators; ++i) {
    MPI_Comm_free(&copies[i]);
    CHECK(copies[i] == MPI_COMM_NULL);
  }
}

// Receives before sends, counted in MPI_Count.
static void receive_many(struct World world) {
  static MPI_Request requests[2 * receives];
  static int values[receives];
  static int sent[receives];
  const int next = (world.rank + 1) % world.size;
  const int previous = (world.rank + world.size - 1) % world.size;
  const double begin = MPI_Wtime();
  for (int i = 0; i < receives; ++i)
    MPI_Irecv_c(&values[i], 1, MPI_INT, previous, i, MPI_COMM_WORLD, &requests[i]);
  // No message has been sent: posting costs only its software steps.
  CHECK(MPI_Wtime() - begin < receives * 20e-6);
  for (int i = 0; i < receives; ++i) {
    sent[i] = pattern(world.rank, i, 0);
    MPI_Isend_c(&sent[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &requests[receives + i]);
  }
  MPI_Waitall(2 * receives, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < receives; ++i) CHECK(values[i] == pattern(previous, i, 0));
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  free_many(world);
  receive_many(world);
  return end_program(world);
}
