// exchange BYTES [poll]: each rank exchanges so many bytes with its neighbours at distances 1 and 2 in a
// ring. With `poll`, then also at 1 and 3, and polls for the end.
#include <mpi.h>
#include <stdlib.h>

enum { most_bytes = 1 << 20 };

static char mine[most_bytes];
static char other[most_bytes];

int main(int argc, char** argv) {
  const int bytes = atoi(argv[1]);
  int rank = 0, size = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int shift = 1; shift < 3; ++shift)
    MPI_Sendrecv(mine, bytes, MPI_CHAR, (rank + shift) % size, 0, other, bytes, MPI_CHAR,
                 (rank - shift + size) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int shift = 1; argc > 2 && shift < 4; shift += 2) {
    MPI_Request both[2];
    MPI_Irecv(other, bytes, MPI_CHAR, (rank - shift + size) % size, 0, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(mine, bytes, MPI_CHAR, (rank + shift) % size, 0, MPI_COMM_WORLD, &both[1]);
    for (int is_done = 0; !is_done;) MPI_Testall(2, both, &is_done, MPI_STATUSES_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
