// Leaves something behind when it finalises MPI; the first argument selects what.
#include <string.h>

#include "../c/check.h"

static struct World world;
static int value = 1;

// The first rank sends two messages to the second one.
static void leave_messages(MPI_Comm communicator) {
  for (int tag = 7; world.rank == 0 && tag < 9; ++tag) {
    MPI_Request request;
    MPI_Isend(&value, 1, MPI_INT, 1, tag, communicator, &request);
    MPI_Request_free(&request);
  }
  MPI_Barrier(communicator);
  MPI_Barrier(communicator);
}

static void messages(void) {
  leave_messages(MPI_COMM_WORLD);
}

static void messages_elsewhere(void) {
  MPI_Comm halo;
  MPI_Comm_dup(MPI_COMM_WORLD, &halo);
  MPI_Comm_set_name(halo, "halo");
  leave_messages(halo);
}

// More than the mapping has slots for, from each rank to its neighbour, which leaves without taking any.
static void many_messages(void) {
  static const char bytes[800];
  for (int i = 0; i < 5000; ++i) MPI_Send(bytes, sizeof bytes, MPI_CHAR, world.rank ^ 1, 7, MPI_COMM_WORLD);
}

// The first rank sends to both others in another collective than they: four messages, of which each is in the
// wrong one.
static void collectives(void) {
  int other = 0;
  if (world.rank == 0) {
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  } else {
    MPI_Reduce(&value, &other, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// Only the last two ranks leave theirs.
static void window(void) {
  MPI_Win grid;
  MPI_Win freed;
  int* memory = NULL;
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, world.rank / 2, world.rank, &half);
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, half, &memory, &grid);  // the line in the report
  MPI_Win_set_name(grid, "grid");
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, half, &memory, &freed);
  MPI_Win_free(&freed);
  if (world.rank < 2) MPI_Win_free(&grid);
  MPI_Comm_free(&half);
}

static const struct {
  const char* name;
  void (*run)(void);
} cases[] = {
    {"messages", messages},
    {"messages-elsewhere", messages_elsewhere},
    {"many-messages", many_messages},
    {"collectives", collectives},
    {"window", window},
};

int main(int argc, char** argv) {
  world = begin_program(&argc, &argv);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) cases[i].run();
  }
  return MPI_Finalize();
}
