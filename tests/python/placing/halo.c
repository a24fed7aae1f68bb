// halo [BYTES]: the ranks of a grid exchange with all their neighbours, five times.
#include <mpi.h>
#include <stdlib.h>

enum { most_bytes = 1 << 16 };

static char out[most_bytes];
static char in[6][most_bytes];

int main(int argc, char** argv) {
  const int bytes = argc > 1 ? atoi(argv[1]) : 16384;
  int size = 0, extents[3] = {0, 0, 0}, closed[3] = {1, 1, 1};
  MPI_Comm grid;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 3, extents);
  MPI_Cart_create(MPI_COMM_WORLD, 3, extents, closed, 1, &grid);
  for (int step = 0; step < 5; ++step) {
    MPI_Request requests[12];
    for (int way = 0; way < 6; ++way) {
      int from = 0, to = 0;
      MPI_Cart_shift(grid, way / 2, way % 2 == 0 ? 1 : -1, &from, &to);
      MPI_Irecv(in[way], bytes, MPI_CHAR, from, way, grid, &requests[way]);
      MPI_Isend(out, bytes, MPI_CHAR, to, way, grid, &requests[6 + way]);
    }
    MPI_Waitall(12, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
