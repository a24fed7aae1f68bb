// One program for every kind of deadlock; the first argument selects it.
#include <string.h>

#include "../c/check.h"

static int value = 0;
static struct World world;

static void send_to(int rank, int tag) {
  MPI_Ssend(&value, 1, MPI_INT, rank, tag, MPI_COMM_WORLD);
}

static void receive_from(int rank, int tag) {
  MPI_Recv(&value, 1, MPI_INT, rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void ssend_cycle(void) {
  send_to((world.rank + 1) % world.size, 7);
}

static void recv_recv(void) {
  if (world.rank < 2) receive_from(1 - world.rank, 5);
}

static void self_receive(void) {
  if (world.rank == 1) receive_from(1, 3);
}

static void probe(void) {
  if (world.rank == 1) MPI_Probe(0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void any_source(void) {
  receive_from(MPI_ANY_SOURCE, MPI_ANY_TAG);
}

static void large_sends(void) {
  static char buffer[1 << 20];
  MPI_Send(buffer, sizeof buffer, MPI_BYTE, world.rank ^ 1, 1, MPI_COMM_WORLD);
}

// Only the last of three requests never completes: the second rank of each pair sends with another tag.
static void waitall(void) {
  int values[3];
  MPI_Request requests[3];
  const int other = world.rank ^ 1;
  for (int i = 0; i < 3; ++i) MPI_Irecv(&values[i], 1, MPI_INT, other, 20 + i, MPI_COMM_WORLD, &requests[i]);
  for (int i = 0; i < 2; ++i) MPI_Send(&value, 1, MPI_INT, other, 20 + i, MPI_COMM_WORLD);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
}

static void waits_for_issend(void) {
  MPI_Request request;
  MPI_Issend(&value, 1, MPI_INT, (world.rank + 1) % world.size, 9, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void sendrecv(void) {
  const int next = (world.rank + 1) % world.size;
  MPI_Sendrecv(&value, 1, MPI_INT, next, 1, &value, 1, MPI_INT, next, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// Rank 2 is missing in the even ranks' communicator: it waits for rank 1 in that of the odd ranks.
static void missing_in_split(void) {
  MPI_Comm part;
  MPI_Comm_split(MPI_COMM_WORLD, world.rank % 2, world.rank, &part);
  if (world.rank % 2 != 0) MPI_Comm_set_name(part, "odd");
  if (world.rank == 2) receive_from(1, 4);
  MPI_Barrier(part);
  if (world.rank == 1) MPI_Recv(&value, 1, MPI_INT, 1, 6, part, MPI_STATUS_IGNORE);
}

static void mismatched(void) {
  int sum = 0;
  if (world.rank == 0) {
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

static void waits_for_finished(void) {
  if (world.rank == 0) receive_from(1, 0);
}

// Rank 0 leaves before the receiver has asked for its message, which is too large to be sent unasked.
static void leaves_with_a_send(void) {
  static char buffer[1 << 20];
  MPI_Request request;
  if (world.rank == 0) MPI_Isend(buffer, sizeof buffer, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &request);
  if (world.rank == 1) MPI_Recv(buffer, sizeof buffer, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// Each rank holds the lock on its own part and requests that of the next one.
static void locks(void) {
  MPI_Win window;
  int* memory = NULL;
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  const int next = (world.rank + 1) % world.size;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, world.rank, 0, window);
  MPI_Put(&value, 1, MPI_INT, world.rank, 0, 1, MPI_INT, window);
  MPI_Win_flush(world.rank, window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, window);
  MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, window);
  MPI_Win_unlock(next, window);
  MPI_Win_unlock(world.rank, window);
  MPI_Win_free(&window);
}

static void fence(void) {
  MPI_Win window;
  int* memory = NULL;
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  if (world.rank != 3) MPI_Win_fence(0, window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&window);
}

static void polls(void) {
  int flag = 0;
  MPI_Request request;
  MPI_Irecv(&value, 1, MPI_INT, (world.rank + 1) % world.size, 8, MPI_COMM_WORLD, &request);
  while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

static void one_polls(void) {
  if (world.rank == 0) polls();
}

static const struct {
  const char* name;
  void (*run)(void);
} cases[] = {
    {"ssend-cycle", ssend_cycle},
    {"recv-recv", recv_recv},
    {"self-receive", self_receive},
    {"probe", probe},
    {"any-source", any_source},
    {"large-sends", large_sends},
    {"waitall", waitall},
    {"issend-wait", waits_for_issend},
    {"sendrecv", sendrecv},
    {"missing-in-split", missing_in_split},
    {"mismatched", mismatched},
    {"finished", waits_for_finished},
    {"finished-sending", leaves_with_a_send},
    {"locks", locks},
    {"fence", fence},
    {"polls", polls},
    {"one-polls", one_polls},
};

int main(int argc, char** argv) {
  world = begin_program(&argc, &argv);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) cases[i].run();
  }
  if (argc > 1 && strncmp(argv[1], "finished", 8) == 0) return MPI_Finalize();
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Finalize();
}
