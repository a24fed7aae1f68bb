// Writes beyond a buffer on request, for tests of sanitizers.
#include <time.h>

#include "check.h"

enum { bytes = 100000 };

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  const int right = (world.rank + 1) % world.size;
  const int left = (world.rank + world.size - 1) % world.size;
  char* outgoing = calloc(bytes, 1);
  char* incoming = malloc(bytes);
  MPI_Comm own;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  outgoing[bytes - 1] = 7;
  MPI_Sendrecv(outgoing, bytes, MPI_CHAR, right, 0, incoming, bytes, MPI_CHAR, left, 0, own,
               MPI_STATUS_IGNORE);
  MPI_Comm_free(&own);
  CHECK(incoming[bytes - 1] == 7);
  const double before = MPI_Wtime();
  const struct timespec second = {1, 0};
  nanosleep(&second, NULL);
  CHECK(MPI_Wtime() - before > 0.999);
  if (argc > 1) incoming[bytes + argc] = 1;
  free(outgoing);
  free(incoming);
  return end_program(world);
}
