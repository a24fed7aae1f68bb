// A rank that polls only when everything has arrived: hundreds of messages more than one hand-over from the
// simulator holds, received by calls that never wait.
#define _DEFAULT_SOURCE  // usleep
#include <unistd.h>

#include "check.h"

enum { messages = 1000 };

static int values[messages];
static MPI_Request requests[messages];

static void send_all(int round) {
  for (int i = 0; i < messages; ++i) {
    const int value = pattern(0, i, round);
    MPI_Send(&value, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
  }
}

static void test_all(void) {
  for (int i = 0; i < messages; ++i) MPI_Irecv(&values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]);
  MPI_Barrier(MPI_COMM_WORLD);
  usleep(100000);
  for (int done = 0; !done;) MPI_Testall(messages, requests, &done, MPI_STATUSES_IGNORE);
  for (int i = 0; i < messages; ++i) CHECK(values[i] == pattern(0, i, 0));
}

static void probe_all(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  usleep(100000);
  for (int i = 0; i < messages; ++i) {
    MPI_Message message;
    for (int found = 0; !found;)
      MPI_Improbe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &message, MPI_STATUS_IGNORE);
    int value = 0;
    MPI_Request request;
    MPI_Imrecv(&value, 1, MPI_INT, &message, &request);
    for (int done = 0; !done;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    CHECK(value == pattern(0, i, 1));
  }
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  for (int round = 0; round < 2; ++round) {
    if (world.rank == 1) {
      round == 0 ? test_all() : probe_all();
    } else {
      MPI_Barrier(MPI_COMM_WORLD);
      if (world.rank == 0 && world.size > 1) send_all(round);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return end_program(world);
}
