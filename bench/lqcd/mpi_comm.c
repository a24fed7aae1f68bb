// Any MPI library.
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>

#include "comm.h"
#include "support.h"

struct CommHalo {
  int count;
  MPI_Request requests[2 * directions];
};

static int extents[dimensions];

int comm_open(const int grid[dimensions]) {
  int rank = 0;
  int size = 0;
  int places = 1;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int mu = 0; mu < dimensions; ++mu) {
    extents[mu] = grid[mu];
    places *= grid[mu];
  }
  if (places != size) fail("a grid of %d places for %d processes", places, size);
  return rank;
}

void comm_place(int place[dimensions]) {
  int rest = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rest);
  for (int mu = 0; mu < dimensions; ++mu) {
    place[mu] = rest % extents[mu];
    rest /= extents[mu];
  }
}

static int neighbour(int direction) {
  const int mu = direction / 2;
  int place[dimensions];
  comm_place(place);
  place[mu] = (place[mu] + (direction % 2 == 0 ? 1 : extents[mu] - 1)) % extents[mu];
  int rank = 0;
  for (int nu = dimensions; nu-- > 0;) rank = rank * extents[nu] + place[nu];
  return rank;
}

// The tag is the direction in which the message travels: where the grid has two places in a dimension, both
// neighbours are one process.
struct CommHalo* comm_declare_halo(const struct CommFace faces[directions]) {
  struct CommHalo* halo = allocate(1, sizeof *halo);
  for (int direction = 0; direction < directions; ++direction) {
    const struct CommFace* face = &faces[direction];
    if (face->bytes > INT_MAX) fail("a face of %zu bytes: MPI counts to %d", face->bytes, INT_MAX);
    if (face->bytes == 0) continue;
    MPI_Recv_init(face->in, (int)face->bytes, MPI_CHAR, neighbour(direction), direction ^ 1, MPI_COMM_WORLD,
                  &halo->requests[halo->count++]);
  }
  for (int direction = 0; direction < directions; ++direction) {
    const struct CommFace* face = &faces[direction];
    if (face->bytes == 0) continue;
    MPI_Send_init(face->out, (int)face->bytes, MPI_CHAR, neighbour(direction), direction, MPI_COMM_WORLD,
                  &halo->requests[halo->count++]);
  }
  return halo;
}

void comm_start(struct CommHalo* halo) {
  MPI_Startall(halo->count, halo->requests);
}

void comm_advance(struct CommHalo* halo) {
  int done = 0;
  if (halo->count > 0) MPI_Testall(halo->count, halo->requests, &done, MPI_STATUSES_IGNORE);
}

void comm_wait(struct CommHalo* halo) {
  MPI_Waitall(halo->count, halo->requests, MPI_STATUSES_IGNORE);
}

void comm_free_halo(struct CommHalo* halo) {
  for (int i = 0; i < halo->count; ++i) MPI_Request_free(&halo->requests[i]);
  free(halo);
}

void comm_sum(double* values, int count) {
  MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

void comm_close(void) {
  MPI_Finalize();
}
