// Probing with and without claiming the message, and cancelling unmatched receives.
#include "check.h"

enum { messages = 20, small = 4, large = 40000 };

static int count_of(int message) {
  return message % 2 == 0 ? small : large;
}

static void send_all(struct World world, int to) {
  static int buffer[large];
  for (int i = 0; i < messages; ++i) {
    for (int k = 0; k < count_of(i); ++k) buffer[k] = pattern(world.rank, i, k);
    MPI_Send(buffer, count_of(i), MPI_INT, to, i, MPI_COMM_WORLD);
  }
}

static void receive_probed(int from) {
  static int buffer[large];
  for (int i = 0; i < messages; ++i) {
    MPI_Status status;
    MPI_Message message = MPI_MESSAGE_NULL;
    int count = 0;
    if (i % 4 == 0) {
      MPI_Probe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    } else if (i % 4 == 1) {
      MPI_Mprobe(MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &message, &status);
    } else {
      int found = 0;
      while (!found && i % 4 == 2) MPI_Iprobe(from, i, MPI_COMM_WORLD, &found, &status);
      while (!found) MPI_Improbe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &message, &status);
    }
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(status.MPI_TAG == i && status.MPI_SOURCE == from && count == count_of(i));
    if (message != MPI_MESSAGE_NULL) {
      MPI_Mrecv(buffer, count, MPI_INT, &message, MPI_STATUS_IGNORE);
      CHECK(message == MPI_MESSAGE_NULL);
    } else {
      MPI_Recv(buffer, count, MPI_INT, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int k = 0; k < count; ++k) CHECK(buffer[k] == pattern(from, i, k));
  }
}

// A claimed message is reserved: a later receive with the same tag gets the next one.
static void claim_first(struct World world, int partner) {
  const int first = world.rank + 10;
  const int second = world.rank + 20;
  MPI_Request requests[2];
  MPI_Isend(&first, 1, MPI_INT, partner, 50, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&second, 1, MPI_INT, partner, 50, MPI_COMM_WORLD, &requests[1]);
  MPI_Message claimed = MPI_MESSAGE_NULL;
  MPI_Mprobe(partner, 50, MPI_COMM_WORLD, &claimed, MPI_STATUS_IGNORE);
  int later = 0;
  MPI_Recv(&later, 1, MPI_INT, partner, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(later == partner + 20);
  int earlier = 0;
  MPI_Request receive;
  MPI_Imrecv(&earlier, 1, MPI_INT, &claimed, &receive);
  MPI_Wait(&receive, MPI_STATUS_IGNORE);
  CHECK(earlier == partner + 10);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void cancel_receives(struct World world, int partner) {
  int never[3] = {-1, -1, -1};
  MPI_Request requests[3];
  for (int i = 0; i < 3; ++i)
    MPI_Irecv(&never[i], 1, MPI_INT, i == 1 ? MPI_ANY_SOURCE : partner, 60, MPI_COMM_WORLD, &requests[i]);
  MPI_Status status;
  int cancelled = 0;
  MPI_Cancel(&requests[1]);
  MPI_Wait(&requests[1], &status);
  MPI_Test_cancelled(&status, &cancelled);
  CHECK(cancelled);
  // The other receives remain: they match in order.
  for (int i = 0; i < 2; ++i) {
    const int value = world.rank + i;
    MPI_Sendrecv(&value, 1, MPI_INT, partner, 60, NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }
  MPI_Wait(&requests[0], &status);
  MPI_Test_cancelled(&status, &cancelled);
  CHECK(!cancelled && never[0] == partner);
  MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
  CHECK(never[2] == partner + 1 && never[1] == -1);
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  const int partner = world.rank ^ 1;
  if (partner < world.size) {
    if (world.rank % 2 == 0) {
      send_all(world, partner);
      receive_probed(partner);
    } else {
      receive_probed(partner);
      send_all(world, partner);
    }
    claim_first(world, partner);
    cancel_receives(world, partner);
  }
  return end_program(world);
}
